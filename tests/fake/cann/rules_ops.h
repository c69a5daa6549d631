/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that the doubles of libnnopbase and libopapi enforce; the form is that of rules.h. */
#ifndef CT_TESTS_FAKE_CANN_RULES_OPS_H
#define CT_TESTS_FAKE_CANN_RULES_OPS_H

#define FAKE_RULES_OPS(X) X(ACLNN_NO_CONTEXT, CODE, "an aclnn call in a thread without a current context")

#endif
