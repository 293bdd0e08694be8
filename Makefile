# Builds, tests, installs and demonstrates pmmpi. `make help` lists what there is.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
export CARGO_TARGET_DIR ?= $(CURDIR)/target
RELEASE = $(CARGO_TARGET_DIR)/release
# The tool as it is installed: bin/ and lib/pmmpi/. Tests, benchmarks and the demo use this one.
STAGE = $(CARGO_TARGET_DIR)/pmmpi
# One profile for everything: a second one would build Polars again.
ALL = --release --locked --workspace --exclude pmmpi-runner
# What `make bench` compares the report to: Python packages that nothing else needs.
PEERS = $(CARGO_TARGET_DIR)/peers
# The MPIs that a runner is built for: those whose compiler wrapper is here.
MPIS = $(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi)),$(mpi)))
# Installs what is missing. A package manager that builds pmmpi says DEPS=:
DEPS = tests/rig/deps.sh
HOST = $(shell rustc -vV | sed -n 's/^host: //p')

VERSION = $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help tool build stage test test-pmu test-dist lint doc bench bench-pmu simulate demo install install-staged runner \
	uninstall dist deb

help: ## this list
	@sed -n 's/^\([a-z%-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

deps-%: ## install Debian packages: deps-build, deps-demo or deps-test; with DEPS=: none is
	@$(DEPS) $*

tool: deps-build ## the tool, and a runner for each MPI found
	$(CARGO) build $(ALL) --lib --bins
	@$(MAKE) --no-print-directory stage

build: deps-test ## the tool, and all tests, examples and benchmarks
	$(CARGO) build $(ALL) --all-targets
	@$(MAKE) --no-print-directory stage
	for mpi in $(MPIS); do \
		MPICC=mpicc.$$mpi $(CARGO) build --release --locked -p pmmpi-runner --examples --target-dir $(CARGO_TARGET_DIR)/$$mpi || exit 1; \
	done

# The launcher is started on every rank: static, it loads no library and starts 0.3 ms sooner; at a fixed
# place in memory, it need not relocate itself. Where there is no static C library it is the one that
# cargo built.
stage:
	@mkdir -p $(STAGE)/bin $(STAGE)/lib/pmmpi
	RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_PANIC=abort \
		CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_STRIP=true \
		$(CARGO) build --release --locked -p pmmpi-launcher --target $(HOST) --target-dir $(CARGO_TARGET_DIR)/static \
		&& install $(CARGO_TARGET_DIR)/static/$(HOST)/release/pmmpi $(STAGE)/bin \
		|| install --strip $(RELEASE)/pmmpi $(STAGE)/bin
	@install --strip $(RELEASE)/pmmpi-report $(STAGE)/bin
	@$(RELEASE)/pmmpi-manual $(STAGE)/share
	@mkdir -p $(STAGE)/include && cp launcher/agent/include/* $(STAGE)/include
	@install --strip $(RELEASE)/pmmpi-topology $(RELEASE)/pmmpi-names $(RELEASE)/libpmmpi_agent.so $(STAGE)/lib/pmmpi
	@for mpi in $(MPIS); do packages/build-runner.sh mpicc.$$mpi $(CARGO_TARGET_DIR) $(STAGE)/lib/pmmpi || exit 1; done

test: build ## every test
	tests/rig/hpcc-mpich.sh $(CARGO_TARGET_DIR)/programs/hpcc-mpich
	tests/rig/mpi4py.sh $(CARGO_TARGET_DIR)/programs/mpi4py
	tests/rig/wheels.sh $(CARGO_TARGET_DIR)/programs/wheels
	$(CARGO) test $(ALL)

test-pmu: ## counters of a processor that has some, in an emulated machine: from Debian's packages
	@CARGO="$(CARGO)" tests/rig/pmu-guest.sh $(CARGO_TARGET_DIR)/pmu

bench-pmu: ## what it costs there to read a counter
	@CARGO="$(CARGO)" tests/rig/pmu-guest.sh $(CARGO_TARGET_DIR)/pmu cost

lint: deps-test ## formatting, clippy, dependency policy: no warning is let through
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings
	$(foreach mpi,$(firstword $(MPIS)),MPICC=mpicc.$(mpi) $(CARGO) clippy --release --locked -p pmmpi-runner \
		--all-targets --target-dir $(CARGO_TARGET_DIR)/$(mpi) -- -D warnings)

doc: ## the Rust documentation
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps

bench: build ## what pmmpi costs, side by side with what it is compared to
	bench/peers/venv.sh $(PEERS)
	$(RELEASE)/pmmpi-bench $(STAGE)/bin/pmmpi $(PEERS)/bin/python > $(CARGO_TARGET_DIR)/RESULTS.md
	cp $(CARGO_TARGET_DIR)/RESULTS.md bench/RESULTS.md

bench-%: build ## one part of it on stdout: start, jobs, counters, regions, scale, widths, bounds or report
	@bench/peers/venv.sh $(PEERS)
	@$(RELEASE)/pmmpi-bench $(STAGE)/bin/pmmpi $(PEERS)/bin/python $*

simulate: build ## what the statistics find on fleets whose truth is known, and how often they are wrong
	$(RELEASE)/examples/simulate > $(CARGO_TARGET_DIR)/simulation.md
	cp $(CARGO_TARGET_DIR)/simulation.md docs/simulation.md

# Without tests, runners and the static launcher, which it does not need. Programs of a build folder find one another there.
demo: deps-demo ## measure Debian's hpcc on two hosts with clocks of their own, and report
	$(CARGO) build $(ALL) --lib --bins
	@tests/rig/demo.sh $(RELEASE) $(RELEASE)/pmmpi-rig-host

install: tool ## into PREFIX (DESTDIR is honoured)
	@$(MAKE) --no-print-directory install-staged

# Builds nothing. STAGE may be another folder of the same form.
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
	install -m 644 slurm/* $(DESTDIR)$(PREFIX)/share/doc/pmmpi/slurm
	install -m 644 docs/*.md $(DESTDIR)$(PREFIX)/share/doc/pmmpi/docs
	install -m 644 docs/schema/*.json $(DESTDIR)$(PREFIX)/share/doc/pmmpi/docs/schema
	install -d $(DESTDIR)$(PREFIX)/share/modulefiles/pmmpi
	install -m 644 packages/modulefile $(DESTDIR)$(PREFIX)/share/modulefiles/pmmpi/$(VERSION)

runner: ## a runner for the MPI of MPICC=/path/to/mpicc, into PREFIX
	packages/build-runner.sh "$(MPICC)" $(CARGO_TARGET_DIR) $(DESTDIR)$(PREFIX)/lib/pmmpi

dist: tool ## archives of a release, into target/dist: sources with all crates, and binaries
	CARGO="$(CARGO)" packages/archives.sh $(CARGO_TARGET_DIR) $(VERSION)

deb: tool ## a Debian package, into target/dist
	packages/deb.sh $(STAGE) $(CARGO_TARGET_DIR)/dist $(VERSION)

test-dist: ## packages and archives: made, installed and used, in the file system of an older distribution too
	packages/test.sh $(CARGO_TARGET_DIR) $(VERSION)

uninstall: ## what install put into PREFIX (DESTDIR is honoured)
	cd $(DESTDIR)$(PREFIX) && rm -rf bin/pmmpi bin/pmmpi-report lib/pmmpi share/doc/pmmpi share/modulefiles/pmmpi \
		$(addprefix include/,$(notdir $(wildcard launcher/agent/include/*))) share/man/man1/pmmpi.1 share/man/man1/pmmpi-*.1 \
		share/bash-completion/completions/pmmpi share/zsh/site-functions/_pmmpi share/fish/vendor_completions.d/pmmpi.fish
