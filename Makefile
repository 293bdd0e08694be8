# Builds, tests, installs and demonstrates pmmpi. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
export CARGO_TARGET_DIR ?= $(CURDIR)/target
RELEASE = $(CARGO_TARGET_DIR)/release
# pmmpi in the same folders as after installation: bin/ and lib/pmmpi/. Tests and benchmarks use these files.
STAGE = $(CARGO_TARGET_DIR)/pmmpi
# All targets use one profile, because a second profile would build Polars again.
ALL = --release --locked --workspace --exclude pmmpi-runner
# The virtual environment with the Python packages that `make bench` compares the report with.
PEERS = $(CARGO_TARGET_DIR)/peers
# The MPIs for which make builds a runner: those whose compiler wrapper is in PATH.
MPIS = $(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi)),$(mpi)))
# The script that installs missing packages. A package manager that builds pmmpi sets DEPS=: to install nothing.
DEPS = tests/rig/deps.sh
HOST = $(shell rustc -vV | sed -n 's/^host: //p')

VERSION = $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help tool build stage staged-launcher staged-runners test test-pmu test-dist lint doc bench bench-pmu \
	bench-kernels simulate demo demo-screen install install-staged runner uninstall dist deb

help: ## show this list
	@sed -n 's/^\([a-z%-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

deps-%: ## install the missing Debian packages for %, which is build, demo, screen or test (with DEPS=: install nothing)
	@$(DEPS) $*

tool: deps-build ## build pmmpi, and a runner for each MPI found
	$(CARGO) build $(ALL) --lib --bins
	@$(MAKE) --no-print-directory stage

build: deps-test ## build pmmpi, and all runners, tests, examples and benchmarks
	$(CARGO) build $(ALL) --all-targets
	@$(MAKE) --no-print-directory stage
	for mpi in $(MPIS); do \
		MPICC=mpicc.$$mpi $(CARGO) build --release --locked -p pmmpi-runner --examples --target-dir $(CARGO_TARGET_DIR)/$$mpi || exit 1; \
	done

# The launcher and the runners have target folders of their own, and each build ends with a step that uses only one core.
stage:
	@mkdir -p $(STAGE)/bin $(STAGE)/lib/pmmpi
	@$(MAKE) --no-print-directory staged-launcher & launcher=$$!; \
		$(MAKE) --no-print-directory staged-runners; runners=$$?; wait $$launcher && exit $$runners
	@install --strip $(RELEASE)/pmmpi-report $(STAGE)/bin
	@$(RELEASE)/pmmpi-manual $(STAGE)/share
	@mkdir -p $(STAGE)/include && cp launcher/agent/include/* $(STAGE)/include
	@install --strip $(addprefix $(RELEASE)/,pmmpi-topology pmmpi-names pmmpi-gpus libpmmpi_agent.so) $(STAGE)/lib/pmmpi
	@install --strip $(RELEASE)/pmmpi $(STAGE)/lib/pmmpi/pmmpi-dynamic

# The launcher starts on every rank, so it must start fast. A static launcher loads no library and starts
# 0.3 ms sooner; at a fixed place in memory, it need not relocate itself. If this machine has no static C
# library, make installs the launcher that cargo built before.
staged-launcher:
	RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_PANIC=abort \
		CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_STRIP=true \
		$(CARGO) build --release --locked -p pmmpi-launcher --target $(HOST) --target-dir $(CARGO_TARGET_DIR)/static \
		&& install $(CARGO_TARGET_DIR)/static/$(HOST)/release/pmmpi $(STAGE)/bin \
		|| install --strip $(RELEASE)/pmmpi $(STAGE)/bin

staged-runners:
	@for mpi in $(MPIS); do packages/build-runner.sh mpicc.$$mpi $(CARGO_TARGET_DIR) $(STAGE)/lib/pmmpi || exit 1; done

test: build ## run all tests except those of test-pmu and test-dist
	tests/rig/hpcc-mpich.sh $(CARGO_TARGET_DIR)/programs/hpcc-mpich
	tests/rig/mpi4py.sh $(CARGO_TARGET_DIR)/programs/mpi4py
	tests/rig/wheels.sh $(CARGO_TARGET_DIR)/programs/wheels
	$(CARGO) test $(ALL) --no-fail-fast

test-pmu: ## test hardware counters in an emulated machine made from Debian's packages
	@CARGO="$(CARGO)" tests/rig/pmu-guest.sh $(CARGO_TARGET_DIR)/pmu

bench-pmu: ## measure what counters and probes cost in the emulated machine of test-pmu
	@CARGO="$(CARGO)" tests/rig/pmu-guest.sh $(CARGO_TARGET_DIR)/pmu cost

lint: deps-test ## check formatting and run clippy: any warning is an error
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings
	$(foreach mpi,$(firstword $(MPIS)),MPICC=mpicc.$(mpi) $(CARGO) clippy --release --locked -p pmmpi-runner \
		--all-targets --target-dir $(CARGO_TARGET_DIR)/$(mpi) -- -D warnings)

doc: ## build the Rust documentation: any warning is an error
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps

bench: build ## measure what pmmpi costs, compared with other programs; writes bench/RESULTS.md
	bench/peers/venv.sh $(PEERS)
	$(RELEASE)/pmmpi-bench $(STAGE)/bin/pmmpi $(PEERS)/bin/python > $(CARGO_TARGET_DIR)/RESULTS.md
	cp $(CARGO_TARGET_DIR)/RESULTS.md bench/RESULTS.md

bench-%: build ## run and print one part of bench: start, jobs, counters, regions, scale, widths, bounds, report, screens or years
	@bench/peers/venv.sh $(PEERS)
	@$(RELEASE)/pmmpi-bench $(STAGE)/bin/pmmpi $(PEERS)/bin/python $*

bench-kernels: ## time kernels of pmmpi screen and their originals alternately (the original of dgemm is OpenBLAS: install OpenBLAS first)
	@for part in triad triad-nt latency dgemm; do \
		$(CARGO) run --release --locked --quiet -p pmmpi-screen-kernels --example in_turns -- $$part || exit 1; \
	done

simulate: build ## measure how often the verdicts are right on simulated fleets; writes docs/simulation.md
	$(RELEASE)/examples/simulate > $(CARGO_TARGET_DIR)/simulation.md
	cp $(CARGO_TARGET_DIR)/simulation.md docs/simulation.md

# The demo needs no tests, no runners and no static launcher. In a build folder, pmmpi finds its other programs beside it.
demo: deps-demo ## measure Debian's hpcc on two simulated hosts with different clocks, and show a report
	$(CARGO) build $(ALL) --lib --bins
	@tests/rig/demo.sh $(RELEASE) $(RELEASE)/pmmpi-rig-host

demo-screen: deps-screen tool ## screen four simulated hosts, one of which may use only one core
	@tests/rig/screen-demo.sh $(STAGE)/bin $(RELEASE)/pmmpi-rig-host

install: tool ## build pmmpi and install it into PREFIX (below DESTDIR, if DESTDIR is set)
	@$(MAKE) --no-print-directory install-staged

# Installs without a build. STAGE may be another folder with the same structure.
install-staged:
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pmmpi
	install -d $(DESTDIR)$(PREFIX)/include
	install -m 644 $(STAGE)/include/* $(DESTDIR)$(PREFIX)/include
	install -m 755 $(STAGE)/bin/* $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(STAGE)/lib/pmmpi/* $(DESTDIR)$(PREFIX)/lib/pmmpi
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions \
		fish/vendor_completions.d doc/pmmpi)
	install -m 644 $(STAGE)/share/man/man1/* $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(STAGE)/share/completions/pmmpi.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pmmpi
	install -m 644 $(STAGE)/share/completions/_pmmpi $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 644 $(STAGE)/share/completions/pmmpi.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 README.md LICENSE-MIT LICENSE-APACHE CHANGELOG.md $(DESTDIR)$(PREFIX)/share/doc/pmmpi
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/doc/pmmpi/,docs/schema bench slurm)
	install -m 644 CONTRIBUTING.md $(DESTDIR)$(PREFIX)/share/doc/pmmpi
	install -m 644 bench/RESULTS.md $(DESTDIR)$(PREFIX)/share/doc/pmmpi/bench
	install -m 755 slurm/* $(DESTDIR)$(PREFIX)/share/doc/pmmpi/slurm
	install -m 644 docs/*.md $(DESTDIR)$(PREFIX)/share/doc/pmmpi/docs
	install -m 644 docs/schema/*.json $(DESTDIR)$(PREFIX)/share/doc/pmmpi/docs/schema
	install -d $(DESTDIR)$(PREFIX)/share/modulefiles/pmmpi
	install -m 644 packages/modulefile $(DESTDIR)$(PREFIX)/share/modulefiles/pmmpi/$(VERSION)

runner: ## build a runner for the MPI of MPICC=/path/to/mpicc, and install it into PREFIX
	packages/build-runner.sh "$(MPICC)" $(CARGO_TARGET_DIR) $(DESTDIR)$(PREFIX)/lib/pmmpi

dist: tool ## make the archives of a release in target/dist: sources with all crates, and binaries
	CARGO="$(CARGO)" packages/archives.sh $(CARGO_TARGET_DIR) $(VERSION)

deb: tool ## make a Debian package in target/dist
	packages/deb.sh $(STAGE) $(CARGO_TARGET_DIR)/dist $(VERSION)

test-dist: ## make the archives and the package, install and use them, also in an older Debian
	packages/test.sh $(CARGO_TARGET_DIR) $(VERSION)

uninstall: ## remove what install put into PREFIX (below DESTDIR, if DESTDIR is set)
	cd $(DESTDIR)$(PREFIX) && rm -rf bin/pmmpi bin/pmmpi-report lib/pmmpi share/doc/pmmpi share/modulefiles/pmmpi \
		$(addprefix include/,$(notdir $(wildcard launcher/agent/include/*))) share/man/man1/pmmpi.1 share/man/man1/pmmpi-*.1 \
		share/bash-completion/completions/pmmpi share/zsh/site-functions/_pmmpi share/fish/vendor_completions.d/pmmpi.fish
