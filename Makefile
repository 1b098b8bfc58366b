# What a machine without ROS needs, in a virtual environment of its own.
#   make demo    a simulated arm, identified live over ROS topics
#   make test    ruff, then pytest in four workers beside mypy; what failed there once more, alone
#   make clean   remove the environment and all that was built
# Variables: DISTRO (of ROS 2: jazzy or kilted), VENV (where the environment goes), PYTHON (3.10
# or newer), TESTS (what `make test` runs; all where not given).

DISTRO ?= jazzy
VENV ?= $(if $(filter jazzy,$(DISTRO)),.venv,.venv-$(DISTRO))
PYTHON ?= python3

SHELL := /bin/sh
.DELETE_ON_ERROR:
# Two recipes writing to one environment, or two groups of nodes at once, help nobody.
.NOTPARALLEL:

prefix := $(abspath $(VENV))
bin := $(prefix)/bin
ros := $(if $(filter jazzy,$(DISTRO)),ros,ros-$(DISTRO))

# No robot may be met: nothing leaves this host, and another group on it has another domain.
ifeq ($(strip $(ROS_DOMAIN_ID)),)
override ROS_DOMAIN_ID := $(shell echo $$(( $$(od -An -N2 -tu2 /dev/urandom) % 101 + 1 )))
endif
export ROS_DOMAIN_ID
export override ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
# Named peers, a discovery server or a profile would lead out of the host all the same.
unexport ROS_STATIC_PEERS ROS_DISCOVERY_SERVER ROS_SUPER_CLIENT ROS_LOCALHOST_ONLY
unexport FASTRTPS_DEFAULT_PROFILES_FILE FASTDDS_DEFAULT_PROFILES_FILE

# The environment's own ROS, not one that the caller has sourced.
export override AMENT_PREFIX_PATH := $(prefix)
unexport PYTHONPATH PYTHONHOME RMW_IMPLEMENTATION
# Each of four workers would compile all the tests anew: half of what it takes to collect them.
unexport PYTHONDONTWRITEBYTECODE
# The ROS wheels start Python a second time with LD_LIBRARY_PATH set and remember that in
# _ROS_WHEELS_BOOTSTRAP_COMPLETE. Called from a process of another such environment, or from a
# shell with a sourced ROS, both would point at libraries that are not ours.
ifneq ($(_ROS_WHEELS_BOOTSTRAP_COMPLETE)$(ROS_DISTRO),)
unexport LD_LIBRARY_PATH
endif
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE

# Installed as it would be by a user, not editable: an editable installation leaves out share/
# and the ament index. So that no test or demo runs the code from before the last edit,
# whatever is installed renews the installation (three seconds, without the network).
settings := setup.py setup.cfg pyproject.toml
installed := package.xml LICENSE \
  $(shell find load_identification resource launch config -not -path '*__pycache__*')
# build/lib is what setuptools packs, modules deleted since included.
install = rm -rf build/lib && $(bin)/python -m pip --disable-pip-version-check --quiet install

# Once is enough, and with the types of one rclpy: those of Kilted say less in some places.
lint := $(if $(filter jazzy,$(DISTRO)),$(bin)/ruff check . && $(bin)/ruff format --check .)
types := $(if $(filter jazzy,$(DISTRO)),$(bin)/mypy,:)

.PHONY: demo test clean

demo: $(prefix)/.demo-stamp $(prefix)/.package-stamp
	$(bin)/load_demo

# A test that hangs ends its worker after 10 minutes (test/conftest.py), and is named. pytest-xdist
# would start another worker, and wait for ever where no other file is left: so it may not.
# Tests over topics have deadlines, and four workers at once can be too much for a machine: a test
# that failed gets a second run with nothing beside it, whose result counts. Both are printed.
test: $(prefix)/.test-stamp $(prefix)/.package-stamp
	$(lint)
	$(types) & types=$$!; \
	timeout --foreground --signal INT --kill-after 60 2400 \
	  $(bin)/pytest --numprocesses 4 --max-worker-restart 0 --dist loadfile \
	  --no-loadscope-reorder $(TESTS); tests=$$?; \
	[ $$tests -ne 124 ] || echo 'the tests were ended: they took more than 40 minutes' >&2; \
	wait $$types || { echo 'mypy has found errors, see above' >&2; exit 1; }; \
	[ $$tests -eq 1 ] || exit $$tests; \
	echo 'what has failed above, once more, alone:'; \
	timeout --foreground --signal INT --kill-after 60 1200 \
	  $(bin)/pytest --last-failed --last-failed-no-failures none --exitfirst $(TESTS)

clean:
	if [ -f $(prefix)/pyvenv.cfg ]; then rm -rf $(prefix); fi
	rm -rf build install log *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip anew, for the one that older Pythons bring can search for matching versions without end.
$(prefix)/.venv-stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Python 3.10 or newer is needed; '$(PYTHON)' is:" \
	    "$$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: install its venv module" \
	    "(on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(prefix)
	$(install) --upgrade pip 'setuptools>=70.1'
	@touch $@

# First what the package needs, from the index, then the package from this checkout.
$(prefix)/.demo-stamp: $(prefix)/.venv-stamp $(settings)
	$(install) '.[$(ros),recordings]'
	@touch $@

$(prefix)/.test-stamp: $(prefix)/.venv-stamp $(settings)
	$(install) '.[$(ros),recordings,test]'
	@touch $@

$(prefix)/.package-stamp: $(prefix)/.venv-stamp $(settings) $(installed)
	$(install) --no-build-isolation --no-deps .
	@touch $@
