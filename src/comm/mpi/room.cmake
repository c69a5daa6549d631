# SPDX-License-Identifier: Apache-2.0
target_link_libraries(engine_mpi PRIVATE MPI::MPI_C)
