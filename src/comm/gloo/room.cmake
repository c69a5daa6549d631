# SPDX-License-Identifier: Apache-2.0
target_compile_definitions(ct_comm_gloo ${scope} CT_HAVE_GLOO=1)
