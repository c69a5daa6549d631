# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch makes of the formulas of examples/plugin: python record.py > recorded.txt (torch 2.15, CPU).

Each line: a name, then numbers as %.9g, which keep float32 whole.
"""
import torch

torch.manual_seed(11)


def line(name, t):
    print(name, " ".join("%.9g" % v for v in t.detach().flatten().tolist()))


# squared_relu.gated: autograd of relu(g)^2 u
g = torch.randn(24, requires_grad=True)
u = torch.randn(24, requires_grad=True)
dy = torch.randn(24)
y = torch.nn.functional.relu(g).square() * u
y.backward(dy)
for name, t in (("g", g), ("u", u), ("dy", dy), ("y", y), ("dg", g.grad), ("du", u.grad)):
    line(name, t)

# lion.update: two groups of numbers, three steps; the update as the paper's algorithm 2 has it, with decoupled weight decay
lr, beta1, beta2, decay, coef = (0.01, 0.002), (0.9, 0.95), (0.99, 0.98), (0.1, 0.0), (1.0, 0.5, 0.25)
half = 12
p = torch.randn(2 * half)
m = torch.zeros(2 * half)
line("p", p)
for step in range(3):
    grad = torch.randn(2 * half)
    line("grad%d" % step, grad)
    for k in range(2):
        s = slice(k * half, (k + 1) * half)
        d = grad[s] * coef[step]
        c = m[s] * beta1[k] + d * (1 - beta1[k])
        p[s] = p[s] * (1 - lr[k] * decay[k]) - lr[k] * torch.sign(c)
        m[s] = m[s] * beta2[k] + d * (1 - beta2[k])
    line("p%d" % step, p)
    line("m%d" % step, m)
