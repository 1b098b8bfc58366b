# The package on the public image of ROS 2, without RViz (docs/robots.md says what to start):
#   docker build -t load_identification . && docker run --rm --net=host load_identification
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}

WORKDIR /ws
COPY . src/load_identification
RUN . "/opt/ros/$ROS_DISTRO/setup.sh" \
    && apt-get update \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install --from-paths src --ignore-src -y --skip-keys rviz2 \
    && colcon build \
    && rm -rf /var/lib/apt/lists/*

ENTRYPOINT ["/bin/bash", "-c", ". /ws/install/setup.bash && exec \"$0\" \"$@\""]
CMD ["ros2", "launch", "load_identification", "load_identification.launch.xml"]
