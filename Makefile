# make demo   build, train the maze ensemble and draw its pictures
# make test   formatting, lints, all tests
# make test-long  estimators against exact answers on ten seeds (more than an hour on 2 cores)
# make bench  the speed of the hot path and of whole iterations

CARGO ?= cargo
STEIN = target/release/stein
DEMO = runs/demo

.PHONY: demo build test test-long bench figures clean

build:
	$(CARGO) build --release --locked

demo: build
	rm -rf $(DEMO)
	$(STEIN) train maze --seed 1 --out $(DEMO)
	$(STEIN) eval $(DEMO)
	$(STEIN) plot $(DEMO)
	@echo "open $(DEMO)/figures/maze_trajectories.png and $(DEMO)/figures/learning_curves.png"

test:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --locked
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

test-long: build
	$(STEIN) verify --full --seeds 10

bench: build
	$(CARGO) bench --locked -p stein
	$(STEIN) bench maze

clean:
	$(CARGO) clean
	rm -rf runs vendor
