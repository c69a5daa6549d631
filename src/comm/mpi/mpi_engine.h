/* SPDX-License-Identifier: Apache-2.0 */
/* The engine for ranks that mpirun or srun started: any MPI of version 3. A module (comm/module.h), loaded for --comm.engine mpi.
 *
 * It only moves messages: collectives and their ordered sums are those of comm.c, with the same bits as over gloo. A group of several is a
 * communicator of its own.
 *
 * Ends. MPI has no connections to close, so a rank that leaves or gives up says so to all others; who waits for it then fails with
 * CT_ERR_PEER at once. At exit the ranks tell each other their exit codes. Where all came, with one code, MPI is finalized; otherwise every
 * rank that is still there prints one line and ends all of them by MPI_Abort with one code: that of the lowest rank whose code is neither
 * 0 nor 75, else 75. A rank that is killed is the launcher's to notice: mpirun ends the others.
 *
 * Threads: MPI_THREAD_MULTIPLE is asked for; with less, calls go one after the other. */
#ifndef CT_COMM_MPI_ENGINE_H
#define CT_COMM_MPI_ENGINE_H

#include "comm/engine.h"

const ct_comm_engine *ct_comm_mpi_engine(void); /* static storage */

#endif
