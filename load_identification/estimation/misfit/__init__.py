"""Why a payload does not fit what is measured: causes that are tried, and named with numbers."""
