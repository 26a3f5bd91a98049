#!/bin/sh
# Puts libmujoco into vendor/mujoco, from where builds and tests take it: a link to MUJOCO_DIR if that is set, otherwise
# the library out of the wheel on PyPI. Does nothing where it is there already.
set -eu
cd "$(dirname "$0")/.."
version=3.17.0
library="libmujoco.so.$version"

fail() {
    echo "error: $1" >&2
    exit 1
}

if [ -n "${MUJOCO_DIR:-}" ]; then
    [ -e "$MUJOCO_DIR/lib/$library" ] && [ -e "$MUJOCO_DIR/lib/libmujoco.so" ] ||
        fail "MUJOCO_DIR=$MUJOCO_DIR has no lib/libmujoco.so of MuJoCo $version; set it to the unpacked folder mujoco-$version, or unset it to have the library fetched"
    given=$(cd "$MUJOCO_DIR" && pwd -P)
    if [ -d vendor/mujoco ] && [ "$given" = "$(cd vendor/mujoco && pwd -P)" ]; then
        exit 0
    fi
    rm -rf vendor/mujoco
    mkdir -p vendor
    ln -s "$given" vendor/mujoco
    exit 0
fi
[ ! -e "vendor/mujoco/lib/$library" ] || [ ! -e vendor/mujoco/lib/libmujoco.so ] || exit 0

hint="set MUJOCO_DIR to an unpacked folder mujoco-$version, or build without the robots by \`cargo build --release -p stein-cli --no-default-features\`"
work=vendor/mujoco.fetch
rm -rf "$work" vendor/mujoco
mkdir -p "$work/lib"
# Any Python will do to fetch a wheel: the second attempt asks for one of a fixed version.
download="python3 -m pip download --quiet --no-deps --only-binary=:all: --dest $work mujoco==$version"
{
    $download || $download --implementation cp --python-version 3.12 --platform "manylinux_2_28_$(uname -m)"
} >"$work/log" 2>&1 || {
    reason=$(tail -n 1 "$work/log")
    rm -rf "$work"
    fail "cannot fetch MuJoCo $version by python3 -m pip (${reason:-no reason given}); $hint"
}
python3 -m zipfile -e "$work"/*.whl "$work/wheel"
mv "$work/wheel/mujoco/$library" "$work/lib/"
ln -s "$library" "$work/lib/libmujoco.so"
mv "$work"/wheel/mujoco-*.dist-info/licenses/* "$work/"
rm -rf "$work/wheel" "$work"/*.whl "$work/log"
mv "$work" vendor/mujoco
echo "MuJoCo $version is in vendor/mujoco"
