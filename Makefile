# Muster: `make help` lists what can be done.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.tools/go/bin:$(PATH):/usr/local/go/bin
GOLANGCI_VERSION := v2.5.0
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# No C in the programs: one file that runs on any host, and in any image.
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
# Images are kept by content over runs of the tests and the demo.
export MUSTER_TEST_IMAGES ?= /var/cache/muster-test
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E env "PATH=$$PATH")

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what building, running and testing need, and say what
	@scripts/setup test

.PHONY: build
build: ## Build bin/muster and bin/muster-agent
	@scripts/setup build
	@mkdir -p bin
	$(BUILD) -o bin/ ./cmd/...

.PHONY: install
install: build ## Put the programs and their completion under PREFIX (/usr/local)
	$(SUDO) install -D -m 755 -t $(DESTDIR)$(or $(PREFIX),/usr/local)/bin bin/muster bin/muster-agent
	bin/muster completion bash | $(SUDO) install -D -m 644 /dev/stdin $(DESTDIR)$(or $(PREFIX),/usr/local)/share/bash-completion/completions/muster

.PHONY: demo
demo: build ## Ask for clusters, use them, give them back: the whole story on this host
	@$(SUDO) scripts/demo

.PHONY: test
test: ## Run every test that fits in 10 minutes, and say how long each package took
	@scripts/setup test
	@scripts/setup lab
	@$(MAKE) --no-print-directory build
	$(SUDO) scripts/test

.PHONY: test-short
test-short: ## Run the tests that need neither root nor images
	@scripts/setup test
	go test -short ./...

.PHONY: test-faults
test-faults: ## Break machines under running jobs in every way, about 40 minutes
	@scripts/setup test
	@$(MAKE) --no-print-directory build
	$(SUDO) env MUSTER_FAULTS=all go test -run TestFaults -v -timeout 90m ./cmd/muster

.PHONY: test-watch
test-watch: ## Break everything that people rely on inside nodes, and see it heal: a quarter of an hour
	@scripts/setup test
	@$(MAKE) --no-print-directory build
	$(SUDO) env MUSTER_WATCH=all go test -count=1 -run TestWatch -v -timeout 40m ./cmd/muster

.PHONY: test-vm
test-vm: ## Clusters of virtual machines, their server killed meanwhile, and one that is saved: some minutes, more without KVM
	@scripts/setup test
	@scripts/setup lab
	@$(MAKE) --no-print-directory build
	$(SUDO) env MUSTER_VM=all go test -count=1 -run 'TestStories/local/local-vm(-cost|-save)?$$' -v -parallel 1 -timeout 90m ./cmd/muster

.PHONY: test-vm-host
test-vm-host: ## Virtual machines with virtual functions, on an emulated host with KVM, an IOMMU and such a card: some minutes
	@scripts/setup test
	@scripts/setup lab
	@$(MAKE) --no-print-directory build
	@$(SUDO) scripts/test-vm-host

.PHONY: test-leaves
test-leaves: ## Leaves that fail, and machines that stand elsewhere than they are said to: measured on this host, some minutes
	@scripts/setup test
	@$(MAKE) --no-print-directory build
	$(SUDO) env MUSTER_LONG=all go test -count=1 -run 'TestStories/local/local-(leaf-down|misplaced)$$' -v -timeout 30m ./cmd/muster

.PHONY: test-lab
test-lab: ## Wake, boot and break virtual machines: a lab and its switch, some minutes
	@scripts/setup lab
	@$(MAKE) --no-print-directory build
	$(SUDO) go test -count=1 -timeout 20m ./metal/switches/... ./lab/...
	@$(SUDO) scripts/test-lab

.PHONY: test-clients
test-clients: ## Reach a cluster with every SSH client of docs/users/ssh-clients.md, through every door, a minute
	@scripts/setup test
	@scripts/setup clients
	@$(MAKE) --no-print-directory build
	$(SUDO) env MUSTER_CLIENTS=all go test -count=1 -run 'TestStories/local/local-clients$$' -timeout 20m ./cmd/muster

.PHONY: test-slurm
test-slurm: build ## Run Slurm's own test suite, and mpi4py's, on a cluster of this host, hours
	@scripts/setup test
	@$(SUDO) scripts/test-slurm

.PHONY: test-stacks
test-stacks: build ## Compile, link and run with each of the twelve stacks, on two machines of this host, half an hour
	@scripts/setup test
	@$(SUDO) scripts/test-stacks

.PHONY: test-apps
test-apps: build ## Run every application of docs/users/applications.md on two machines of this host, half an hour
	@scripts/setup test
	@$(SUDO) scripts/test-apps

.PHONY: test-hpl-history
test-hpl-history: build ## Hold one link to a tenth between runs of HPL, and have the history name it, about ten minutes
	@scripts/setup test
	@$(SUDO) scripts/test-hpl-history

.PHONY: test-slurm-lab
test-slurm-lab: build ## Run some of Slurm's own tests on bare machines of a lab, half an hour
	@scripts/setup lab
	@$(SUDO) scripts/test-lab slurm

.PHONY: test-lab-faults
test-lab-faults: build ## Break the machines of a lab in every way and see what becomes of it, about a quarter of an hour
	@scripts/setup lab
	@$(SUDO) scripts/test-lab faults

.PHONY: test-lab-compare
test-lab-compare: build ## Measure one image on a bare machine of a lab and on one of this host, and compare them
	@scripts/setup test
	@scripts/setup lab
	@$(SUDO) scripts/test-lab compare

.PHONY: test-lab-hibernate
test-lab-hibernate: build ## A cluster of bare machines hibernates in a lab while an MPI job runs, about a quarter of an hour
	@scripts/setup lab
	MUSTER_HIBERNATE=1 go test -count=1 -run 'TestMachine/hibernates' ./agent/boot
	@$(SUDO) scripts/test-lab hibernate

.PHONY: test-programs
test-programs: ## Verify the kernels of the NAS Parallel Benchmarks up to class A, some minutes
	@scripts/setup test
	MUSTER_PROGRAMS=A go test -count=1 -v -timeout 20m ./measure/programs

.PHONY: bench
bench: build ## Measure what docs/operators/performance.md publishes
	@scripts/setup test
	@$(SUDO) scripts/bench

.PHONY: bench-admission
bench-admission: ## Measure answers of sites of up to 100,000 machines, and a simulated year, some minutes
	@go test -run xxx -bench Admission -benchtime 20x -benchmem ./control/allocate
	@go test -run xxx -bench Year -benchtime 1x -v ./control/simulate

.PHONY: bench-certificate
bench-certificate: build ## Measure how long measuring takes, and what it adds to a delivery
	@scripts/setup test
	@$(SUDO) env PARTS=certificate RUNS=$${RUNS:-3} scripts/bench

.PHONY: bench-connections
bench-connections: build ## Measure the server with 10,000 agents while 50,000 strangers come, some minutes
	@scripts/setup test
	@$(SUDO) env PARTS=connections RUNS=1 AGENTS=$(AGENTS) STRANGERS=$(STRANGERS) scripts/bench

.PHONY: bench-placement
bench-placement: build ## Hold programs that are dense against programs that are spread, on this host, an hour and more (CLASS=W: a quarter)
	@scripts/setup test
	@$(SUDO) scripts/bench-placement $(or $(CLASS),A) $(LAUNCHES)

.PHONY: bench-boot
bench-boot: ## Measure the boot service against Kea, dnsmasq and nginx, about 10 minutes
	@scripts/setup test
	@$(SUDO) scripts/bench-boot

.PHONY: bench-gateway
bench-gateway: build ## Hold the gateway's doors against a direct connection, sshd and a relay, an hour and more (RUNS=2 FILE_MB=20 FILES=100: minutes)
	@scripts/setup test
	@$(SUDO) env BENCH_GATEWAY=1 MUSTER=$(CURDIR)/bin/muster PATH=$(PATH) go test -count=1 -timeout 12h -v -run 'TestBenchGateway$$' ./gateway

.PHONY: bench-supervisors
bench-supervisors: build ## Memory, starts and adoption of the supervisors of 200 virtual machines, some minutes (SUPERVISORS=20: one)
	@scripts/setup lab
	@$(SUDO) env MUSTER_SUPERVISORS=$(or $(SUPERVISORS),200) MUSTER_PROGRAM=$(CURDIR)/bin/muster go test -count=1 -run 'TestMany$$' -v -timeout 30m ./vm/supervisor

.PHONY: bench-vm-start
bench-vm-start: build ## Measure from the request to sshd's greeting beside the same QEMU that is started by hand, some minutes (RUNS=1: fewer)
	@scripts/setup lab
	@$(SUDO) scripts/bench-vm-start

.PHONY: bench-overhead
bench-overhead: build ## Hold a delivered cluster against plain nodes with the same programs, ten minutes and more
	@scripts/setup test
	@$(SUDO) env LAUNCHES=$${LAUNCHES:-15} scripts/overhead

.PHONY: test-detect
test-detect: build ## Break dedicated machines in known ways and count what is found: hours; FOR=600 for less
	@scripts/setup test
	@$(SUDO) env RUNS=$${RUNS:-20} FOR=$${FOR:-0} scripts/detect

.PHONY: power
power: ## Simulate what certificates can see and how often they err, and publish it
	MUSTER_POWER=1 nice -n 19 go test ./measure/analysis -run '^(TestPowerCurves|TestDriftTable)$$' -v -count=1 -timeout 60m

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 30s)
	@scripts/fuzz $${FUZZTIME:-30s}

.PHONY: lint
lint: ## gofmt, go vet, golangci-lint (pinned)
	@scripts/setup test
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run: gofmt -w .'; exit 1; }
	go vet ./...
	@.tools/bin/golangci-lint version 2>/dev/null | grep -q "version $(GOLANGCI_VERSION:v%=%)" || { \
		echo "installing golangci-lint $(GOLANGCI_VERSION) into .tools/bin"; \
		GOBIN=$(CURDIR)/.tools/bin GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION); }
	.tools/bin/golangci-lint run ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist
