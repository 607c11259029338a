# cqlua. `make` builds build/cqlua; `make help` lists the rest.

# ---- what can be chosen ---------------------------------------------------------------------------------------------
BUILD    ?= build
PREFIX   ?= /usr/local
DEMO     ?= examples/biped.lua --particles 20
DEMO_ITERATIONS ?= 120#  at most two minutes on two cores; one alone takes about 70 s
WERROR   ?= 0#            1: warnings are errors
SANITIZE ?= 0#          1: AddressSanitizer and UBSan
# GPUs that the CUDA device is compiled for: empty: those of this machine, or one architecture where it has none; "all";
# or compute capabilities, "75 90". Newer GPUs translate the last one when they first load it.
CUDA_ARCHS ?=
# DIMENSION.BYTES of the kernels to build. For developers: `make KERNELS=2.4`, or KERNELS="2.4 3.4", is sooner done, and
# the program says that it has no others
EVERY_KERNEL := 2.4 2.8 3.4 3.8
KERNELS  ?= $(EVERY_KERNEL)

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif
PKG_CONFIG ?= pkg-config

# all cores; a -j on the command line wins, and makes below share the jobs of the one above
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
MAKEFLAGS += --no-builtin-rules

# a build of some of the kernels; the CUDA device, which takes longest, is then built by `make cuda` alone
PARTIAL := $(filter-out $(KERNELS),$(EVERY_KERNEL))
ifneq ($(filter-out $(EVERY_KERNEL),$(KERNELS))$(if $(strip $(KERNELS)),,none),)
$(error KERNELS is "$(KERNELS)"; it must hold some of $(EVERY_KERNEL): dimension, and bytes of a number)
endif

# ---- what was found -------------------------------------------------------------------------------------------------
MACHINE     := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
LUAJIT_INC  := $(shell $(PKG_CONFIG) --cflags luajit 2>/dev/null)
LUAJIT_DIR  := $(shell $(PKG_CONFIG) --variable=libdir luajit 2>/dev/null)
# the archive where there is one: one program that needs no LuaJIT installed
LUAJIT_LIB  := $(or $(wildcard $(LUAJIT_DIR)/libluajit-5.1.a),$(shell $(PKG_CONFIG) --libs luajit 2>/dev/null))
# instruction sets that the kernels are built for; the best of the machine is chosen at run time. A
# developer's build has only that one
SIMD_EVERY  := $(if $(filter x86_64,$(MACHINE)),1 3 4,1)
SIMD_LEVELS ?= $(if $(PARTIAL),$(shell sh engine/cpu/level.sh),$(SIMD_EVERY))
VERSION     := $(shell cat VERSION)
# the CUDA Toolkit's compiler; without it there is no CUDA device, and nothing else is missing
NVCC        ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
# the compiler of an MPI; without it there are no ranks, and nothing else is missing
MPICC       ?= $(shell command -v mpicc 2>/dev/null)

# ---- flags ----------------------------------------------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wvla
C_WARNINGS := $(WARNINGS) -Wmissing-prototypes -Werror=implicit-function-declaration
ifeq ($(WERROR),1)
WARNINGS += -Werror
C_WARNINGS += -Werror
endif
OPTIMIZE := -O3
ifeq ($(SANITIZE),1)
OPTIMIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
endif
CPPFLAGS_ALL := -Iengine $(CPPFLAGS)
# no contraction here, so that gcc and clang compute the same; kernels below may fuse a multiply and an add: it halves
# their instructions, and only removes a rounding
COMMON   := $(OPTIMIZE) -pthread -ffp-contract=off
C_FLAGS  := -std=c11 -D_GNU_SOURCE= $(COMMON) $(C_WARNINGS) $(CFLAGS)
CXX_FLAGS := -std=c++17 $(COMMON) $(WARNINGS) $(CXXFLAGS)
# gcc is pedantic about const on arrays of arrays, which C23 allows and clang takes as C11; and notes that wide vectors
# are returned otherwise without AVX, which no function outside of its object sees
KERNEL_FLAGS := -ffp-contract=fast -Wno-pedantic -Wno-psabi
# at -O1 gcc 12 takes a matrix that it has split by its rows for a smaller one; and of functions as long as these it
# gives up following each variable for a debugger, after a minute
ifeq ($(SANITIZE),1)
KERNEL_FLAGS += -Wno-stringop-overflow -fno-var-tracking
endif
SIMD_FLAGS_1 := $(if $(filter x86_64,$(MACHINE)),-march=x86-64)
SIMD_FLAGS_3 := -march=x86-64-v3
SIMD_FLAGS_4 := -march=x86-64-v4 -mprefer-vector-width=512
# -rdynamic: LuaJIT's FFI finds the cq_* functions in the program itself
LINK_FLAGS := $(OPTIMIZE) -pthread -rdynamic $(LDFLAGS)
# the C++ library goes into the program, which runs where there is none
LIBRARIES  := -lopenblas -lm -ldl -static-libstdc++

# ---- sources and objects --------------------------------------------------------------------------------------------
KERNEL  := engine/cpu/kernels.c engine/cpu/laws.c engine/cpu/reference/kernels.c
C_FILES := $(filter-out $(KERNEL),$(sort $(shell find engine -name '*.c'))) $(sort $(wildcard cuda/*.c))
CXX_FILES := $(sort $(shell find engine -name '*.cc'))
VARIANTS := $(foreach k,$(KERNELS),$(foreach s,$(SIMD_LEVELS),$(k).$(s)))
KERNEL_OBJECTS := $(foreach f,$(KERNEL),$(VARIANTS:%=$(BUILD)/$(basename $(f)).%.o))
OBJECTS := $(C_FILES:%.c=$(BUILD)/%.o) $(CXX_FILES:%.cc=$(BUILD)/%.o) $(KERNEL_OBJECTS)
# the CUDA device: kernels once for each dimension and precision, the rest once
CUDA_KERNEL := cuda/kernels.cu
CUDA_FILES := $(filter-out $(CUDA_KERNEL),$(sort $(wildcard cuda/*.cu)))
CUDA_VARIANTS := $(KERNELS)
# what worlds and rollouts need, for the C tests: neither Lua nor OpenBLAS
CORE_OBJECTS := $(filter-out $(foreach room,host picture geometry,$(BUILD)/engine/$(room)/%),$(OBJECTS))
C_TESTS := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/c/*.c))) \
           $(patsubst tests/c/%.cc,$(BUILD)/tests/%,$(sort $(wildcard tests/c/*.cc))) \
           $(patsubst tests/cuda/%.cc,$(BUILD)/tests/cuda/%,$(sort $(wildcard tests/cuda/*.cc))) \
           $(patsubst tests/cuda/%.c,$(BUILD)/tests/cuda/%,$(sort $(wildcard tests/cuda/*.c))) $(BUILD)/tests/bench/speed

.PHONY: all help cuda cuda-budget gpu-check setup demo test tests run-tests trainings fuzz hunt check-all accuracy bench install clean FORCE
.PHONY: zoo docs papers verify peers study-check export-check report-check python-check mpi mpi-check
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

# a missing compiler or header is named before a hundred errors follow from it
ifneq ($(filter-out help cuda mpi cuda-budget gpu-check $(BUILD)/cqlua-cuda.so $(BUILD)/cqlua-mpi.so $(BUILD)/tests/% setup demo test tests trainings check-all clean,$(or $(MAKECMDGOALS),all)),)
ifeq ($(MACHINE),)
$(error the compiler $(CC) was not found; `make setup` installs what is missing)
endif
ifeq ($(LUAJIT_LIB),)
$(error LuaJIT was not found by $(PKG_CONFIG); `make setup` installs what is missing)
endif
endif

all: $(BUILD)/cqlua $(if $(PARTIAL),,$(if $(NVCC),$(BUILD)/cqlua-cuda.so)) $(if $(MPICC),$(BUILD)/cqlua-mpi.so) ## build build/cqlua, the CUDA device where nvcc is, and ranks where mpicc is (the default)

help: ## this list, and what was detected
	@echo "cqlua $(VERSION)"; echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='	' read -r name what; do \
	  printf '  make %-11s %s\n' "$$name" "$$what"; done
	@echo; echo "detected"
	@printf '  %-15s %s\n' 'C compiler' "$$(command -v $(CC) >/dev/null && $(CC) --version | head -n 1 || echo 'not found: make setup')" \
	  'machine' '$(or $(MACHINE),unknown)' 'kernels for' '$(if $(filter x86_64,$(MACHINE)),x86-64 and its levels v3 (AVX2) and v4 (AVX-512),$(or $(MACHINE),unknown))' \
	  'LuaJIT' '$(or $(LUAJIT_LIB),not found: make setup)' \
	  'OpenBLAS' "$$($(PKG_CONFIG) --modversion openblas 2>/dev/null || echo 'not found: make setup')" \
	  'mpicc' '$(or $(MPICC),not found: cq.Ranks.mpi() needs libopenmpi-dev)' \
  'nvcc' '$(or $(NVCC),not found: there will be no CUDA device)' \
	  'busted' "$$(command -v busted || echo 'not found: make test installs it')" \
	  'luacheck' "$$(command -v luacheck || echo 'not found: make test installs it')" \
	  'ffmpeg' "$$(command -v ffmpeg || echo 'not found: make demo installs it')"
	@echo; echo "variables: CUDA_ARCHS='$(GPU_ARCHS)' KERNELS='$(KERNELS)' BUILD=$(BUILD) PREFIX=$(PREFIX) CC=$(CC) CXX=$(CXX)" \
	  "WERROR=$(WERROR) SANITIZE=$(SANITIZE) DEMO=$(DEMO)"

# ---- the program ----------------------------------------------------------------------------------------------------
# objects depend on this file, which changes when the flags do
FLAGS := $(CC) $(CXX) $(CPPFLAGS_ALL) $(C_FLAGS) $(CXX_FLAGS) $(LINK_FLAGS) $(KERNEL_FLAGS) $(SIMD_FLAGS_1) $(SIMD_FLAGS_3) $(SIMD_FLAGS_4) $(LUAJIT_LIB)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D); echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

# the header without its includes, as LuaJIT reads it, and the same as bytes for the program to carry
$(BUILD)/cq.cdef: engine/cq.h engine/lists.h engine/drives.h engine/bodies.h engine/pictures.h engine/tensors.h \
  $(BUILD)/flags
	@grep -v '^#include <' $< | $(CC) -E -P -x c -iquote engine - -o $@
$(BUILD)/cdef.inc: $(BUILD)/cq.cdef
	@od -An -v -tu1 $< | sed 's/[0-9][0-9]*/&,/g' > $@

$(BUILD)/engine/host/%.o: engine/host/%.c $(BUILD)/flags $(BUILD)/cdef.inc VERSION
	@mkdir -p $(@D); echo "  cc    $<"
	@$(CC) $(CPPFLAGS_ALL) -I$(BUILD) $(LUAJIT_INC) -DCQ_VERSION='"$(VERSION)"' -DCQ_SHARE='"$(PREFIX)/share/cqlua"' $(C_FLAGS) -MMD -MP -c $< -o $@

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D); echo "  cc    $<"
	@$(CC) $(CPPFLAGS_ALL) $(C_FLAGS) -MMD -MP -c $< -o $@

$(BUILD)/%.o: %.cc $(BUILD)/flags
	@mkdir -p $(@D); echo "  c++   $<"
	@$(CXX) $(CPPFLAGS_ALL) $(CXX_FLAGS) -MMD -MP -c $< -o $@

# one object for each dimension, precision and instruction set: kernels.DIM.BYTES.SIMD.o, laws.DIM.BYTES.SIMD.o
define kernel_rule
$(BUILD)/engine/cpu/%.$(1).$(2).$(3).o: engine/cpu/%.c $(BUILD)/flags
	@mkdir -p $$(@D); echo "  cc    $$<  $(1)D, $(2)-byte real, simd level $(3)"
	@$$(CC) $$(CPPFLAGS_ALL) -DCQ_DIM=$(1) -DCQ_REAL_BYTES=$(2) -DCQ_SIMD=$(3) $$(C_FLAGS) $$(KERNEL_FLAGS) $$(SIMD_FLAGS_$(3)) -MMD -MP -c $$< -o $$@
endef
$(foreach v,$(VARIANTS),$(eval $(call kernel_rule,$(word 1,$(subst ., ,$(v))),$(word 2,$(subst ., ,$(v))),$(word 3,$(subst ., ,$(v))))))

# what is linked depends on this file, which changes when the list of objects does
$(BUILD)/objects: FORCE
	@mkdir -p $(@D); echo '$(OBJECTS) $(CUDA_OBJECTS)' | cmp -s - $@ || echo '$(OBJECTS) $(CUDA_OBJECTS)' > $@

$(BUILD)/cqlua: $(OBJECTS) $(BUILD)/objects
	@echo "  link  $@"
	@$(if $(CXX_FILES),$(CXX),$(CC)) $(LINK_FLAGS) $(OBJECTS) $(LUAJIT_LIB) $(LIBRARIES) -o $@.new && mv $@.new $@

-include $(OBJECTS:.o=.d) $(C_TESTS:%=%.d)

# ---- the CUDA device -------------------------------------------------------------------------------------------------
# asked for once, where it is needed: nvidia-smi may take a second
GPU_ARCHS = $(eval GPU_ARCHS := $(if $(NVCC),$(shell sh cuda/archs.sh '$(NVCC)' $(CUDA_ARCHS))))$(GPU_ARCHS)
# A multiply and an add may be fused, as on the CPU, and float32 flushes denormals, as there (engine/base/denormal.h);
# no flag does so for float64, whose denormals take a GPU no longer. Quotients and roots stay correctly rounded, which
# -ftz does not change. The host's compiler sees pragmas that are for the GPU's.
CUDA_FLAGS = -std=c++17 -O3 -ftz=true -prec-div=true -prec-sqrt=true $(CPPFLAGS_ALL) -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-unknown-pragmas -Xptxas -v \
  -Wno-deprecated-gpu-targets \
  $(foreach a,$(GPU_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(lastword $(GPU_ARCHS)),code=compute_$(lastword $(GPU_ARCHS)) $(NVCCFLAGS)
CUDA_OBJECTS := $(patsubst cuda/%.cu,$(BUILD)/cuda/%.cuda.o,$(CUDA_FILES)) $(CUDA_VARIANTS:%=$(BUILD)/cuda/kernels.%.cuda.o)
# what the assembler says of registers and memory stays in the .log beside the object, and
# the PTX of each GPU in the .ptx
CUDA_COMPILE = rm -rf $@.ptx; mkdir $@.ptx; \
  $(NVCC) $(CUDA_FLAGS) --keep --keep-dir $@.ptx -MMD -MP -MF $@.d -c $< -o $@ 2> $@.log || \
  { cat $@.log >&2; echo "nvcc failed on $<; make NVCC= builds without the CUDA device" >&2; rm -rf $@ $@.ptx; exit 1; }; \
  find $@.ptx -type f ! -name '*.ptx' -exec rm {} +

$(BUILD)/cuda/flags: FORCE
	@mkdir -p $(@D); flags='$(NVCC) $(CUDA_FLAGS)'; echo "$$flags" | cmp -s - $@ || echo "$$flags" > $@

$(BUILD)/cuda/%.cuda.o: cuda/%.cu $(BUILD)/cuda/flags
	@echo "  nvcc  $<"
	@$(CUDA_COMPILE)

define cuda_rule
$(BUILD)/cuda/kernels.$(1).cuda.o: $(CUDA_KERNEL) $(BUILD)/cuda/flags
	@echo "  nvcc  $$<  $(word 1,$(subst ., ,$(1)))D, $(word 2,$(subst ., ,$(1)))-byte real"
	@$$(subst $$(NVCC),$$(NVCC) -DCQ_DIM=$(word 1,$(subst ., ,$(1))) -DCQ_REAL_BYTES=$(word 2,$(subst ., ,$(1))),$$(CUDA_COMPILE))
endef
$(foreach v,$(CUDA_VARIANTS),$(eval $(call cuda_rule,$(v))))

$(BUILD)/cqlua-cuda.so: $(CUDA_OBJECTS) $(BUILD)/objects
	@echo "  link  $@"
	@$(NVCC) -shared -cudart static -Xlinker --exclude-libs,ALL $(CUDA_OBJECTS) -o $@.new && mv $@.new $@

cuda: ## build the CUDA device, build/cqlua-cuda.so; it needs nvcc
	@$(if $(NVCC),,echo "nvcc was not found: install the CUDA Toolkit, or say where it is with NVCC=..."; exit 1)
	@$(MAKE) --no-print-directory $(BUILD)/cqlua-cuda.so

cuda-budget: cuda ## what nvcc made of the kernels: registers and memory against tests/cuda/budget.txt, loads that would be stale
	@sh tests/cuda/budget.sh $(BUILD)
	@sh tests/cuda/coherent.sh $(BUILD)

gpu-check: ## on a machine with a GPU: parity with the CPU, NVIDIA's sanitizer, speed; ONLY names stages
	@MAKE="$(MAKE)" NVCC="$(NVCC)" sh tests/cuda/gpu-check.sh -b $(BUILD) $(ONLY)

-include $(CUDA_OBJECTS:=.d)

# ---- ranks over MPI -------------------------------------------------------------------------------------------------
# mpicc calls the compiler that the rest is built with
$(BUILD)/cqlua-mpi.so: mpi/mpi.c mpi/mpi.h $(BUILD)/flags
	@mkdir -p $(@D); echo "  mpicc $<"
	@OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPICC) $(C_FLAGS) -fPIC -fvisibility=hidden -shared $< -o $@.new && mv $@.new $@

mpi: ## build ranks over MPI, build/cqlua-mpi.so; it needs mpicc
	@$(if $(MPICC),,echo "mpicc was not found: install the Debian package libopenmpi-dev, or say where it is with MPICC=..."; exit 1)
	@$(MAKE) --no-print-directory $(BUILD)/cqlua-mpi.so

# ---- the CUDA device under a host emulation, for tests ------------------------------------------------------------
# The sources of cuda/ by the C++ compiler, with an emulated <cuda_runtime.h> before any other: no CUDA Toolkit is
# needed. gcc notes how it passes structures that no other object sees
EMULATED_FLAGS := -Itests/cuda/emulation $(CPPFLAGS_ALL) $(CXX_FLAGS) -Wno-psabi -fPIC -fvisibility=hidden
# the kernels alone: they run no slower for it, since most of the time goes into fibers and
# checks, and are compiled in half
KERNELS_EMULATED := $(EMULATED_FLAGS) -O1
EMULATION_OBJECTS := $(patsubst %.cc,$(BUILD)/%.o,$(sort $(wildcard tests/cuda/emulation/*.cc)))
EMULATED := $(basename $(CUDA_FILES:cuda/%=%)) $(CUDA_VARIANTS:%=kernels.%)
# The same with calls of tests/cuda/emulation/instrument.cc at every access of memory, to look for races; the
# sanitizer's own library is not linked. By gcc, for clang copies structures unseen.
RACE_CXX := $(if $(findstring clang,$(CXX)),g++,$(CXX))
RACE_FLAGS := $(EMULATED_FLAGS) -O1 -g1 -fno-sanitize=all -fsanitize=thread --param=tsan-distinguish-volatile=1

$(BUILD)/tests/cuda/emulation/%.o: tests/cuda/emulation/%.cc $(BUILD)/flags
	@mkdir -p $(@D); echo "  c++   $<"
	@$(CXX) $(EMULATED_FLAGS) -MMD -MP -c $< -o $@

# FOLDER, compiler and flags
define emulated_rules
$(BUILD)/tests/cuda/$(1)/%.o: cuda/%.cu $(BUILD)/flags
	@mkdir -p $$(@D); echo "  c++   $$<  $(1)"
	@$(2) -MMD -MP -x c++ -c $$< -o $$@

$(BUILD)/tests/cuda/$(1)/kernels.%.o: $(CUDA_KERNEL) $(BUILD)/flags
	@mkdir -p $$(@D); echo "  c++   $$<  $(1), $$(basename $$*)D, $$(subst .,,$$(suffix $$*))-byte real"
	@$(2) -DCQ_DIM=$$(basename $$*) -DCQ_REAL_BYTES=$$(subst .,,$$(suffix $$*)) -MMD -MP -x c++ -c $$< -o $$@

-include $(EMULATED:%=$(BUILD)/tests/cuda/$(1)/%.d)
endef
$(eval $(call emulated_rules,emulated,$(CXX) $(KERNELS_EMULATED)))
$(eval $(call emulated_rules,instrumented,$(RACE_CXX) $(RACE_FLAGS)))

$(BUILD)/tests/cuda-emulated.so: $(EMULATED:%=$(BUILD)/tests/cuda/emulated/%.o) $(EMULATION_OBJECTS)
$(BUILD)/tests/cuda-race.so: $(EMULATED:%=$(BUILD)/tests/cuda/instrumented/%.o) $(EMULATION_OBJECTS)
$(BUILD)/tests/cuda-%.so:
	@echo "  link  $@"
	@$(CXX) -shared $(LINK_FLAGS) $^ -ldl -o $@.new && mv $@.new $@

# tests and measurements of the device, a real one or not
$(BUILD)/tests/cuda/%: tests/cuda/%.c $(CORE_OBJECTS) $(BUILD)/flags
	@mkdir -p $(@D); echo "  test  $<"
	@$(CC) $(CPPFLAGS_ALL) $(C_FLAGS) -MMD -MP -MT $@ -MF $@.d -c $< -o $@.o
	@$(CC) $(LINK_FLAGS) $@.o $(CORE_OBJECTS) $(LIBRARIES) -o $@

$(BUILD)/tests/bench/%: tests/bench/%.c $(CORE_OBJECTS) $(BUILD)/flags
	@mkdir -p $(@D); echo "  bench $<"
	@$(CC) $(CPPFLAGS_ALL) $(C_FLAGS) -MMD -MP -MT $@ -MF $@.d -c $< -o $@.o
	@$(CC) $(LINK_FLAGS) $@.o $(CORE_OBJECTS) $(LIBRARIES) -o $@

# what a GPU's launches, barriers and copies take: for a real one only
$(BUILD)/tests/cuda/latency: tests/cuda/latency.cu cuda/launch.h $(BUILD)/cuda/flags
	@mkdir -p $(@D); echo "  bench $<"
	@$(NVCC) $(CUDA_FLAGS) $< -o $@ 2> $@.log || { cat $@.log >&2; exit 1; }

# an object that the loader must refuse
$(BUILD)/tests/cuda/failures: $(BUILD)/tests/cuda/failures.stranger.so
$(BUILD)/tests/cuda/failures.stranger.so: tests/cuda/stranger/object.c engine/backend/backend.h engine/cq.h $(BUILD)/flags
	@mkdir -p $(@D); echo "  cc    $<"
	@$(CC) $(CPPFLAGS_ALL) $(C_FLAGS) -fPIC -shared $< -o $@

# tests of kernels alone, and of the emulation itself
CUDA_TEST_CXX = $(CXX) $(EMULATED_FLAGS)
$(BUILD)/tests/cuda/race: private CUDA_TEST_CXX = $(RACE_CXX) $(RACE_FLAGS)
$(BUILD)/tests/cuda/%: tests/cuda/%.cc $(EMULATION_OBJECTS) $(BUILD)/flags
	@mkdir -p $(@D); echo "  test  $<"
	@$(CUDA_TEST_CXX) -MMD -MP -MT $@ -MF $@.d -c $< -o $@.o
	@$(CXX) $(LINK_FLAGS) $@.o $(EMULATION_OBJECTS) -o $@

-include $(EMULATION_OBJECTS:.o=.d)

# ---- set-up, demo, tests --------------------------------------------------------------------------------------------
# A fresh machine has only make: packages come first, then a new make that detects them.
setup: ## install the Debian packages that are missing
	@sh engine/host/setup.sh build demo test

demo: ## set up, build, train the demo robot and leave a video in build/demo
	@sh engine/host/setup.sh build demo
	@$(MAKE) --no-print-directory $(BUILD)/cqlua
	@rm -rf $(BUILD)/demo
	@$(BUILD)/cqlua $(DEMO) --iterations $(DEMO_ITERATIONS) --out $(BUILD)/demo
	@echo; echo "pictures and video: $$(ls -d $(BUILD)/demo/*.mp4 2>/dev/null || echo $(BUILD)/demo)"

test: ## set up, build and run all tests
	@$(MAKE) --no-print-directory tests

# the tests alone; ONLY=name runs those files whose name holds it. Where nvcc is, the kernels are held to their budget,
# of compute capability 9.0
BUDGETED := $(if $(ONLY),,$(NVCC))
tests:
	@sh engine/host/setup.sh build test
	@$(MAKE) --no-print-directory run-tests

run-tests: $(BUILD)/cqlua $(if $(MPICC),$(BUILD)/cqlua-mpi.so) $(C_TESTS) $(BUILD)/tests/cuda-emulated.so $(BUILD)/tests/cuda-race.so $(if $(BUDGETED),$(BUILD)/cqlua-cuda.so)
	@$(BUILD)/cqlua tests/run.lua --build $(BUILD) --budget $(if $(BUDGETED),yes,no) $(if $(ONLY),--only $(ONLY))

# a test that decides which allocation fails
$(BUILD)/tests/starve: LINK_FLAGS += -Wl,--wrap=cq_alloc,--wrap=calloc
# a build of some kernels only, for this machine only
$(BUILD)/tests/partial: CORE_OBJECTS := $(filter-out $(KERNEL_OBJECTS),$(CORE_OBJECTS)) \
  $(filter %.2.4.1.o %.3.8.4.o,$(KERNEL_OBJECTS))
# pictures, which worlds do not need
$(BUILD)/tests/picture: CORE_OBJECTS := $(filter $(BUILD)/engine/base/% $(BUILD)/engine/picture/%,$(OBJECTS))
# tests may look into any room
$(BUILD)/tests/%: tests/c/%.c $(CORE_OBJECTS) $(BUILD)/flags
	@mkdir -p $(@D); echo "  test  $<"
	@$(CC) $(CPPFLAGS_ALL) $(C_FLAGS) -MMD -MP -MT $@ -MF $@.d -c $< -o $@.o
	@$(CC) $(LINK_FLAGS) $@.o $(CORE_OBJECTS) $(LIBRARIES) -o $@
# those in C++ compute with dual numbers, in templates that take three times as long to compile at -O3
$(BUILD)/tests/%: tests/c/%.cc $(CORE_OBJECTS) $(BUILD)/flags
	@mkdir -p $(@D); echo "  test  $<"
	@$(CXX) $(CPPFLAGS_ALL) $(CXX_FLAGS) -O1 -MMD -MP -MT $@ -MF $@.d -c $< -o $@.o
	@$(CXX) $(LINK_FLAGS) $@.o $(SHARED_OBJECT) $(CORE_OBJECTS) $(LIBRARIES) -o $@
$(BUILD)/tests/over_dual/%.o: tests/c/over_dual/%.cc $(BUILD)/flags
	@mkdir -p $(@D); echo "  c++   $<"
	@$(CXX) $(CPPFLAGS_ALL) $(CXX_FLAGS) -O1 -MMD -MP -c $< -o $@
$(BUILD)/tests/rollout_dual $(BUILD)/tests/implicit_dual $(BUILD)/tests/reference_dual: $(BUILD)/tests/over_dual/rollout.o
$(BUILD)/tests/rollout_dual $(BUILD)/tests/implicit_dual $(BUILD)/tests/reference_dual: private SHARED_OBJECT := $(BUILD)/tests/over_dual/rollout.o
-include $(BUILD)/tests/over_dual/rollout.d

trainings: ## train every example to its end and hold it to what is said here of it; minutes
	@sh engine/host/setup.sh build test
	@$(MAKE) --no-print-directory $(BUILD)/cqlua
	@$(BUILD)/cqlua tests/spec.lua tests/trainings.lua

# ONLY=rhino: those whose command has that word; WITH="--threads 1": more of their command line
papers: $(BUILD)/cqlua ## experiments of the second ChainQueen paper in full, held to what they are to reach; hours, and goes on where it was stopped
	@$(BUILD)/cqlua -e 'require("tests.papers.full").run([[$(ONLY)]], [[$(WITH)]])'

# root: Slurm and PostgreSQL are started here, with files of their own, and ended
study-check: $(BUILD)/cqlua ## parameter studies: 100 kills, 10,000 claims, Slurm, GNU parallel and PostgreSQL for real; minutes
	@sh engine/host/setup.sh study
	@$(BUILD)/cqlua tests/study/kill.lua
	@$(BUILD)/cqlua tests/study/claims.lua
	@sh tests/study/slurm.sh $(BUILD)/cqlua
	@sh tests/study/postgres.sh $(BUILD)/cqlua

export-check: $(BUILD)/cqlua ## exported files opened by NumPy, VTK, plyfile and trimesh, which come from PyPI
	@sh tests/export/run.sh -b $(BUILD)

report-check: $(BUILD)/cqlua ## the page of a run in chromium: size, opening, frames a second; cost of the live view
	@$(BUILD)/cqlua tests/report/check.lua

python-check: $(BUILD)/cqlua ## cqlua env by Gymnasium's check_env and PPO of Stable-Baselines3, which come from PyPI
	@sh tests/python/run.sh -b $(BUILD)

mpi-check: $(BUILD)/cqlua ## ranks over MPI for real: the same bits on 1, 3, 4 and 7, failures, kills, going on; two minutes
	@sh engine/host/setup.sh mpi
	@$(MAKE) --no-print-directory mpi
	@sh tests/ranks/mpi.sh $(BUILD)/cqlua

# readers of files and options are given mangled ones; SECONDS_EACH for each of the six,
# SEED for others than yesterday's
SECONDS_EACH ?= 12
SEED ?= 1
fuzz: ## mangled meshes, pictures, parameters and options under the sanitizers, a minute; SECONDS_EACH=3600 takes hours
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/check/sanitize CC=gcc CXX=g++ WERROR=1 SANITIZE=1 NVCC= $(BUILD)/check/sanitize/cqlua
	@$(BUILD)/check/sanitize/cqlua tests/fuzz/run.lua --seconds $(SECONDS_EACH) --seed $(SEED) --keep $(BUILD)/fuzz

COUNT   ?= 1000
VERBOSE ?= 0
hunt: $(BUILD)/cqlua ## gradients of random scenes against differences: COUNT of them from SEED on; five minutes for 1000
	@$(BUILD)/cqlua tests/hunt.lua --seed $(SEED) --count $(COUNT) $(if $(filter-out 0,$(VERBOSE)),--verbose)

# LuaJIT's memory is not scanned for pointers: what only Lua holds would be called a leak
# CQ_LANES=1: as compilers without vector extensions build the kernels
check-all: ## gcc and clang with warnings as errors, kernels in plain C, tests under AddressSanitizer and UBSan, full trainings
	@sh engine/host/setup.sh build test check
	@$(MAKE) --no-print-directory trainings
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/check/clang CC=clang CXX=clang++ WERROR=1 NVCC= all
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/check/gcc CC=gcc CXX=g++ WERROR=1 NVCC= tests
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/check/plain CPPFLAGS=-DCQ_LANES=1 WERROR=1 NVCC= ONLY=c/ tests
	@ASAN_OPTIONS=detect_leaks=0 $(MAKE) --no-print-directory BUILD=$(BUILD)/check/sanitize CC=gcc CXX=g++ WERROR=1 SANITIZE=1 NVCC= tests
	@$(MAKE) --no-print-directory study-check
	@$(MAKE) --no-print-directory mpi-check
	@$(MAKE) --no-print-directory fuzz
	@$(if $(NVCC),$(MAKE) --no-print-directory BUILD=$(BUILD)/check/cuda CUDA_ARCHS=all cuda-budget,echo "nvcc was not found: the CUDA device was not built")

accuracy: $(BUILD)/cqlua ## error of the gradients, beside the paper's
	@$(BUILD)/cqlua accuracy

# ONLY="bar spin": those cases alone
verify: $(BUILD)/cqlua ## cases of known answer: tests/verify/results.csv and docs/verification.md; ONLY=name runs one
	@$(BUILD)/cqlua verify $(ONLY) --csv tests/verify/results.csv; status=$$?; \
	  $(BUILD)/cqlua -e 'require("tests.verification").write()'; exit $$status

zoo: $(BUILD)/cqlua ## trained robots of zoo/ run again, their figures beside the claimed ones
	@status=0; for name in $$($(BUILD)/cqlua replay | cut -d' ' -f1); do \
	  $(BUILD)/cqlua replay $$name --render no || status=1; done; exit $$status

bench: $(BUILD)/cqlua ## speed of the scenes
	@$(BUILD)/cqlua bench

peers: $(BUILD)/cqlua ## beside Taichi, plain C, Genesis (11 GiB from PyPI) and Newton: build/peers.csv, build/peers-others.csv
	@CQLUA=$(abspath $(BUILD))/cqlua tests/bench/peers/run.sh --keep $(BUILD)/peers --out $(BUILD)/peers.csv; status=$$?; \
	  python3 tests/bench/peers/others.py --cqlua $(BUILD)/cqlua --folder $(BUILD)/peers --out $(BUILD)/peers-others.csv && exit $$status

docs: $(BUILD)/cqlua ## tables of README.md and docs/ from results.csv and the examples; the reference in build/docs
	@$(BUILD)/cqlua -e 'require("tests.pages.write").all()'
	@mkdir -p $(BUILD)/docs
	@$(BUILD)/cqlua help --format html > $(BUILD)/docs/reference.html
	@echo "wrote $(BUILD)/docs/reference.html"

# what the program reads at run time, and what its users read; of an earlier install nothing is left
SHARED := lua scenes examples docs zoo README.md CHANGELOG.md VERSION LICENSE
install: $(BUILD)/cqlua ## to PREFIX (/usr/local)
	@install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/cqlua
	@install $(BUILD)/cqlua $(DESTDIR)$(PREFIX)/bin/cqlua
	@cd $(DESTDIR)$(PREFIX)/share/cqlua && rm -rf $(SHARED)
	@cp -R $(SHARED) $(DESTDIR)$(PREFIX)/share/cqlua/
	@if [ -f $(BUILD)/cqlua-cuda.so ]; then install -D $(BUILD)/cqlua-cuda.so $(DESTDIR)$(PREFIX)/lib/cqlua/cqlua-cuda.so; fi
	@if [ -f $(BUILD)/cqlua-mpi.so ]; then install -D $(BUILD)/cqlua-mpi.so $(DESTDIR)$(PREFIX)/lib/cqlua/cqlua-mpi.so; fi
	@echo "installed $(DESTDIR)$(PREFIX)/bin/cqlua and $(DESTDIR)$(PREFIX)/share/cqlua"

clean: ## remove build/
	@rm -rf $(BUILD)
