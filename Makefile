# Builds, tests, installs and demonstrates pmmpi. `make help` lists what there is.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
export CARGO_TARGET_DIR ?= $(CURDIR)/target
BUILT = $(CARGO_TARGET_DIR)/release
# One profile for everything: a second one would build Polars again.
ALL = --release --locked --workspace --exclude pmmpi-runner
# The MPIs that a runner is built for: those whose compiler wrapper is here.
MPIS = $(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi)),$(mpi)))

.PHONY: help deps build runners test lint doc bench demo install

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 12

deps: ## install the Debian packages that build, tests and demo need
	@tests/rig/deps.sh

build: deps runners ## the tool and a runner for each MPI found
	$(CARGO) build $(ALL)

runners:
	@for mpi in $(MPIS); do \
		MPICC=mpicc.$$mpi $(CARGO) build --release --locked -p pmmpi-runner \
			--target-dir $(CARGO_TARGET_DIR)/$$mpi || exit 1; \
		mkdir -p $(BUILT); \
		cp -f $(CARGO_TARGET_DIR)/$$mpi/release/pmmpi-runner $(BUILT)/pmmpi-runner-$$mpi || exit 1; \
	done

test: deps runners ## every test
	$(CARGO) build $(ALL) --all-targets
	$(CARGO) test $(ALL)

lint: deps ## formatting, clippy, dependency policy: no warning is let through
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings
	$(foreach mpi,$(firstword $(MPIS)),MPICC=mpicc.$(mpi) $(CARGO) clippy --release --locked -p pmmpi-runner \
		--target-dir $(CARGO_TARGET_DIR)/$(mpi) -- -D warnings)

doc: ## the Rust documentation
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps

bench: build ## what pmmpi costs, side by side with what it is compared to
	$(CARGO) build --release --locked -p pmmpi-bench
	$(BUILT)/pmmpi-bench

demo: build ## measure Debian's hpcc on two hosts with clocks of their own, and report
	@tests/rig/demo.sh $(BUILT)

install: build ## into PREFIX (DESTDIR is honoured)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pmmpi
	install -m 755 $(BUILT)/pmmpi $(BUILT)/pmmpi-report $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(BUILT)/pmmpi-topology $(wildcard $(BUILT)/pmmpi-runner-*) $(DESTDIR)$(PREFIX)/lib/pmmpi
	install -m 755 $(BUILT)/libpmmpi_agent.so $(DESTDIR)$(PREFIX)/lib/pmmpi
