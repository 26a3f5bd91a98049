# make demo   build, train the maze ensemble and draw its pictures
# make test   formatting, lints, all tests
# make test-long  whole episodes against Gymnasium; estimators against exact answers on ten seeds; experiments to their reports (half an hour on 2 cores)
# make bench  the speed of the hot path, of whole iterations and of the robots
# make mujoco puts libmujoco into vendor/, or links MUJOCO_DIR there; the others do it by themselves
# make dist   a folder with the program and libmujoco that runs wherever it is put

CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
STEIN = $(TARGET)/release/stein
DEMO = runs/demo
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# No path of the building machine gets into what is handed on.
REMAP = --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=cargo --remap-path-prefix=$(CURDIR)=stein
DIST = dist/stein-$(VERSION)-$(shell uname -m)-linux

.PHONY: demo build test test-long bench mujoco dist clean

build: mujoco
	$(CARGO) build --release --locked

mujoco:
	@tools/mujoco.sh

demo: build
	rm -rf $(DEMO)
	$(STEIN) train maze --seed 1 --out $(DEMO)
	$(STEIN) eval $(DEMO)
	$(STEIN) plot $(DEMO)
	@echo "open $(DEMO)/figures/maze_trajectories.png and $(DEMO)/figures/learning_curves.png"

test: mujoco
	$(CARGO) fmt --all --check
	rustfmt --edition 2024 --check examples/own-environment/src/main.rs
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) check -p stein --no-default-features --locked
	$(CARGO) check -p stein-cli --no-default-features --locked
	$(CARGO) test --workspace --locked
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	$(CARGO) package --workspace --no-verify --allow-dirty --locked --offline --quiet

test-long: build
	$(CARGO) test --release --locked -p stein-cli --test gymnasium -- --ignored --nocapture
	STEIN_FUZZ_CASES=20000 $(CARGO) test --release --locked -p stein-cli --test fuzz -- --nocapture
	$(STEIN) verify --full --seeds 10
	rm -rf $(TARGET)/smoke
	for name in maze cheetah table2 rewardfree sawyer; do \
		$(STEIN) reproduce $$name --scale smoke --jobs 2 --out $(TARGET)/smoke/$$name || exit 1; done

bench: build
	$(CARGO) bench --locked -p stein
	$(CARGO) bench --locked -p stein-mujoco
	$(STEIN) bench maze
	$(STEIN) bench hopper

dist: mujoco
	STEIN_PORTABLE=1 RUSTFLAGS="$(RUSTFLAGS) $(REMAP)" $(CARGO) build --profile dist --locked -p stein-cli
	rm -rf $(DIST)
	mkdir -p $(DIST)/licenses/mujoco
	cp $(TARGET)/dist/stein README.md $(DIST)
	cp -L vendor/mujoco/lib/libmujoco.so.* $(DIST)
	cp LICENSE-MIT LICENSE-APACHE $(DIST)/licenses
	for file in LICENSE LICENSES_THIRD_PARTY.md; do \
		if [ -e vendor/mujoco/$$file ]; then cp vendor/mujoco/$$file $(DIST)/licenses/mujoco; fi; done
	@echo "$(DIST) is ready"

clean:
	$(CARGO) clean
	rm -rf runs vendor dist
