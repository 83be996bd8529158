"""Pictures: functions that take a network, images and an Axes."""
