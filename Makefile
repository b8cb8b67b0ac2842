# Penstock's targets. make help lists them; .ci/run is what CI runs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Tools are pinned by the tool directives of a modfile of their own, so that
# their dependencies do not choose the product's; the go command caches the
# built binaries. golangci-lint comes with kube-api-linter built in.
TOOL := go tool -modfile=go.tools.mod
CONTROLLER_GEN := $(TOOL) controller-gen
GOLANGCI_LINT := $(TOOL) golangci-lint-kube-api-linter
GOVULNCHECK := $(TOOL) govulncheck
KUSTOMIZE := $(TOOL) kustomize

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The rooms that carry webhook and RBAC markers.
MARKED := $(wildcard conversion webhooks policies/audit policies/controller policies/stored reconcilers)
MARKED_PATHS := $(MARKED:%=paths=./%/...)

# What a real node runs is built for the tests where it could run: as root.
NODE := $(if $(filter Linux-0,$(shell uname -s)-$(shell id -u)),node)

# What does not need a control plane: everything outside ./test/.
UNIT_PACKAGES = $$(go list ./... | grep -v '^github.com/penstock-dev/penstock/test\(/\|$$\)')

TEST_TIMEOUT ?= 30m
# A count: ended by the clock, fuzzing fails now and then on a busy machine.
FUZZTIME ?= 50000x
HISTORIES ?= 1000000
ROUND_TRIPS ?= 1000000
SEED ?= $(shell date +%s)000000
BENCH ?= .
BENCHTIME ?= 1s

##@ General

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make <target>" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Develop

.PHONY: generate
generate: generate-deepcopy generate-crds generate-manifests generate-policies ## Generate all that is generated.

.PHONY: generate-deepcopy
generate-deepcopy: ## Generate the deep copies of the API types.
	$(CONTROLLER_GEN) object paths=./api/...

# generateEmbeddedObjectMeta, or the API server drops the labels of a template.
# crdgen drops the descriptions of Kubernetes' own types; see its package comment.
.PHONY: generate-crds
generate-crds: generate-deepcopy ## Generate config/crd from the API types.
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:stdout \
		| go run ./cmd/crdgen -out config/crd

.PHONY: generate-manifests
generate-manifests: ## Generate config/webhook and config/rbac from markers.
ifneq ($(MARKED),)
	$(CONTROLLER_GEN) webhook rbac:roleName=penstock-manager $(MARKED_PATHS) \
		output:webhook:dir=config/webhook output:rbac:dir=config/rbac
endif

.PHONY: generate-policies
generate-policies: ## Generate config/policies from the policy library.
	go run ./policies/library/generate config/policies

.PHONY: fmt
fmt: ## Format the code and mend what linters can mend.
	$(GOLANGCI_LINT) fmt ./...
	$(GOLANGCI_LINT) run --fix ./...

.PHONY: lint
lint: ## Lint the code, and the v1 types by the Kubernetes API conventions.
	$(GOLANGCI_LINT) run ./...
	$(GOLANGCI_LINT) run --config .golangci-kal.yml ./api/v1/...

.PHONY: build
build: ## Build bin/penstock, stamped with the version.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/penstock ./cmd/penstock

# MANAGER_FLAGS are flags of penstock manager, such as --system-namespaces=cni.
# Not by go run, which a signal other than Ctrl-C ends before what it runs.
.PHONY: run
run: build controlplane ## Run a local control plane with Penstock in front of it.
	@go build -o bin/penstock-local ./test/local
	@exec bin/penstock-local $(MANAGER_FLAGS)

.PHONY: controlplane
controlplane: ## Build the control plane's binaries (20 minutes the first time).
	cd test/controlplane && go run ./build

.PHONY: node
node: ## Build what a real node runs (4 minutes the first time).
	cd test/controlplane && go run ./build -only node

.PHONY: clean
clean: ## Remove what was built; the control plane's binaries stay.
	rm -rf bin .run

##@ Test

.PHONY: test
test: controlplane $(NODE) test-race ## Run every test.
	go test -timeout $(TEST_TIMEOUT) ./...

# One test, as all of them take minutes so; the tests against a real API server
# run a manager that was built so.
.PHONY: test-race
test-race: ## Edit policies under load with the race detector.
	go test -race -run '^TestPoliciesAreEditedUnderLoad$$' ./webhooks

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane.
	go test $(UNIT_PACKAGES)

# go test fuzzes one target of one package at a time. It would make each input
# that is of interest smaller for a minute, and do nothing else.
.PHONY: test-fuzz
test-fuzz: ## Fuzz each fuzz target FUZZTIME (a count, or a duration).
	go list -f '{{$$p := .}}{{range .TestGoFiles}}{{$$p.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$p.Dir}}/{{.}}{{"\n"}}{{end}}' ./... \
		| { xargs -r grep -oHE '^func Fuzz[A-Za-z0-9_]+' || true; } \
		| while IFS=: read -r file target; do \
			target=$${target#func }; \
			echo "$$(dirname "$${file#$$PWD/}") $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$(dirname "$$file")"; \
		done

# A test run converts 20,000.
.PHONY: test-round-trips
test-round-trips: ## Convert ROUND_TRIPS random objects there and back, and hold each against the careful path.
	go test -timeout 0 -run '^TestRoundTrip$$' ./conversion -round-trips $$(( $(ROUND_TRIPS) / 4 ))

# A test run simulates 10,000; a seed of today's makes others every night.
.PHONY: test-simulation
test-simulation: ## Simulate HISTORIES random histories of jobs and clusters, from SEED on.
	go test -timeout $(TEST_TIMEOUT) -v -run '^TestSimulation$$' ./reconcilers/training ./reconcilers/ray \
		-histories $(HISTORIES) -seed $(SEED)

.PHONY: test-integration
test-integration: controlplane ## Run the tests against a real API server.
	go test -timeout $(TEST_TIMEOUT) ./test/integration/...

.PHONY: test-e2e
test-e2e: controlplane ## Run the tests against a whole control plane.
	go test -timeout $(TEST_TIMEOUT) ./test/e2e/...

# Skipped, with a line that says what is missing, where no node can run.
.PHONY: test-node
test-node: controlplane $(NODE) ## Run the tests with real containers (root on Linux).
	go test -timeout $(TEST_TIMEOUT) -v ./test/node/...

# The figures to hold come last, one a line: bar NAME VALUE LIMIT.
.PHONY: bench
bench: controlplane ## Run the benchmarks that match BENCH, then measure what is to be held.
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...
	go run ./test/bench

.PHONY: bench-conversion
bench-conversion: controlplane ## Measure conversion: calls, and filling watch caches with 10,000 objects.
	go run ./test/bench -conversion

.PHONY: bench-policy
bench-policy: controlplane ## Measure what policies cost a running manager, and editing them under load.
	go run ./test/bench -policy

.PHONY: bench-training
bench-training: controlplane ## Measure what 100 and 1,000 training jobs cost the reconciler.
	go run ./test/bench/growth -kind training

.PHONY: bench-ray
bench-ray: controlplane ## Measure what 200 and 1,000 Ray clusters cost the reconciler.
	go run ./test/bench/growth -kind ray -few 200

##@ Verify

.PHONY: verify
verify: generate verify-tidy verify-kustomize lint verify-clean ## Generate and lint; fail if anything is left to commit.

# The tools' modfile is tidied as a module by itself: beside the product's
# packages, go mod tidy would add their dependencies too.
.PHONY: verify-tidy
verify-tidy: ## Fail if a go.mod is not tidy.
	for file in $$(git ls-files go.mod '*/go.mod'); do \
		(cd "$$(dirname "$$file")" && go mod tidy -diff); \
	done
	scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
		cp go.tools.mod "$$scratch/go.mod" && cp go.tools.sum "$$scratch/go.sum" && \
		cd "$$scratch" && go mod tidy -diff

.PHONY: verify-kustomize
verify-kustomize: ## Fail if a kustomization does not build.
	files=$$(git ls-files --cached --others --exclude-standard 'config/*kustomization.yaml'); \
	for file in $$files; do \
		grep -q '^kind: Component' "$$file" || $(KUSTOMIZE) build "$$(dirname "$$file")" >/dev/null; \
	done

.PHONY: verify-clean
verify-clean: ## Fail if the work tree differs from the last commit.
	@status=$$(git status --porcelain --untracked-files=all); \
	if [[ -n "$$status" ]]; then \
		echo "The work tree differs from the last commit; run make generate fmt and commit:"; \
		echo "$$status"; git --no-pager diff; exit 1; \
	fi

# Not part of verify: it reads a database of vulnerabilities from outside.
.PHONY: vuln
vuln: ## Look for known vulnerabilities that the code reaches.
	$(GOVULNCHECK) ./...
