# debian-minimal sets the sources in 10-debian-minimal.bash.
if [ -n "${DIB_APT_SOURCES_CONF:-}" ]; then
    export DIB_APT_SOURCES_CONF="${DIB_APT_SOURCES_CONF// $DIB_RELEASE\/updates / $DIB_RELEASE-security }"
fi
