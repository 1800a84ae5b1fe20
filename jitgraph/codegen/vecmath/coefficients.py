"""Polynomial coefficients, lowest degree first; made by bench/vecmath_fit.py, not to be edited by hand."""

from __future__ import annotations

from typing import Final

_h = float.fromhex
Coefficients = dict[str, tuple[float, ...]]

EXP: Final[Coefficients] = {
    # exp(r) = 1 + r + r^2 P(r); error 2^-28.2
    "float": (
        _h("0x1.fffffc0000000p-2"),
        _h("0x1.55548c0000000p-3"),
        _h("0x1.5558580000000p-5"),
        _h("0x1.123dc60000000p-7"),
        _h("0x1.6ac5420000000p-10"),
    ),
    # exp(r) = 1 + r + r^2 P(r); error 2^-56.4
    "double": (
        _h("0x1.000000000000ap-1"),
        _h("0x1.55555555554fap-3"),
        _h("0x1.555555555087ep-5"),
        _h("0x1.1111111127c00p-7"),
        _h("0x1.6c16c18429e54p-10"),
        _h("0x1.a01a012a4fadfp-13"),
        _h("0x1.a0199a0cbf682p-16"),
        _h("0x1.71df25626b8c6p-19"),
        _h("0x1.28ad729246084p-22"),
        _h("0x1.ad7f579140f35p-26"),
    ),
}

EXP2: Final[Coefficients] = {
    # 2^r = 1 + r ln 2 + r^2 P(r); error 2^-28.2
    "float": (
        _h("0x1.ebfbdc0000000p-3"),
        _h("0x1.c6af840000000p-5"),
        _h("0x1.3b2db00000000p-7"),
        _h("0x1.5f06680000000p-10"),
        _h("0x1.41a0ce0000000p-13"),
    ),
    # 2^r = 1 + r ln 2 + r^2 P(r); error 2^-57.7
    "double": (
        _h("0x1.ebfbdff82c5a1p-3"),
        _h("0x1.c6b08d704a045p-5"),
        _h("0x1.3b2ab6fba0775p-7"),
        _h("0x1.5d87fe78c3821p-10"),
        _h("0x1.4309130dcbea7p-13"),
        _h("0x1.ffcbfbc7937d9p-17"),
        _h("0x1.62bfc9e38c09bp-20"),
        _h("0x1.b526532443120p-24"),
        _h("0x1.e617d61497844p-28"),
        _h("0x1.e7c6a7e72c0b9p-32"),
    ),
}

EXPM1: Final[Coefficients] = {
    # expm1(r) = r + r^2/2 + r^3 P(r); error 2^-29.4
    "float": (
        _h("0x1.5555600000000p-3"),
        _h("0x1.5554de0000000p-5"),
        _h("0x1.10fe720000000p-7"),
        _h("0x1.6d4bce0000000p-10"),
        _h("0x1.bbc34c0000000p-13"),
    ),
    # expm1(r) = r + r^2/2 + r^3 P(r); error 2^-64.0
    "double": (
        _h("0x1.5555555555555p-3"),
        _h("0x1.555555555554dp-5"),
        _h("0x1.1111111111355p-7"),
        _h("0x1.6c16c16c1a7f8p-10"),
        _h("0x1.a01a019ed9b46p-13"),
        _h("0x1.a01a01906bf1bp-16"),
        _h("0x1.71de3f43c4c43p-19"),
        _h("0x1.27e50ad2526fdp-22"),
        _h("0x1.ae5243d9ad880p-26"),
        _h("0x1.1f2c31d0a9c1ap-29"),
        _h("0x1.7a73223dc5517p-33"),
    ),
}

LOG: Final[Coefficients] = {
    # log(1 + f) = f - f^2/2 + f^3 P(f); error 2^-27.2
    "float": (
        _h("0x1.5555540000000p-2"),
        _h("-0x1.0002260000000p-2"),
        _h("0x1.99a0080000000p-3"),
        _h("-0x1.5472440000000p-3"),
        _h("0x1.22da1a0000000p-3"),
        _h("-0x1.0d853e0000000p-3"),
        _h("0x1.055ba00000000p-3"),
        _h("-0x1.38b6520000000p-4"),
    ),
    # 2 atanh(s) = 2 s + s z P(z), z = s^2, s = f / (2 + f); error 2^-59.5
    "double": (
        _h("0x1.5555555555592p-1"),
        _h("0x1.999999997ff5fp-2"),
        _h("0x1.24924941dbb9dp-2"),
        _h("0x1.c71c5219990b1p-3"),
        _h("0x1.74663bc3a83fbp-3"),
        _h("0x1.39a207e1583e6p-3"),
        _h("0x1.2f027bb338c7cp-3"),
    ),
}

SIN: Final[Coefficients] = {
    # sin(r) = r + r z P(z), z = r^2; error 2^-27.9
    "float": (
        _h("-0x1.5555460000000p-3"),
        _h("0x1.1107780000000p-7"),
        _h("-0x1.9953fe0000000p-13"),
    ),
    # sin(r) = r + r z P(z), z = r^2; error 2^-57.9
    "double": (
        _h("-0x1.5555555555548p-3"),
        _h("0x1.111111110f730p-7"),
        _h("-0x1.a01a019be924bp-13"),
        _h("0x1.71de35553117fp-19"),
        _h("-0x1.ae5e4b8a6b38bp-26"),
        _h("0x1.5d8b5802bcc67p-33"),
    ),
}

COS: Final[Coefficients] = {
    # cos(r) = 1 - z/2 + z^2 P(z), z = r^2; error 2^-33.0
    "float": (
        _h("0x1.55554a0000000p-5"),
        _h("-0x1.6c0c280000000p-10"),
        _h("0x1.99e80e0000000p-16"),
    ),
    # cos(r) = 1 - z/2 + z^2 P(z), z = r^2; error 2^-63.9
    "double": (
        _h("0x1.555555555554bp-5"),
        _h("-0x1.6c16c16c15013p-10"),
        _h("0x1.a01a019c8ed06p-16"),
        _h("-0x1.27e4f7f141340p-22"),
        _h("0x1.1ee9db8ea076bp-29"),
        _h("-0x1.8fa65f1203aeap-37"),
    ),
}

TAN: Final[Coefficients] = {
    # tan(r) = r + r z P(z), z = r^2; error 2^-29.6
    "float": (
        _h("0x1.5555600000000p-2"),
        _h("0x1.110d9e0000000p-3"),
        _h("0x1.bad9c20000000p-5"),
        _h("0x1.5cc0d40000000p-6"),
        _h("0x1.62cb2e0000000p-7"),
        _h("0x1.9c13080000000p-14"),
        _h("0x1.1e91ae0000000p-8"),
    ),
    # tan(r) = r + r z P(z), z = r^2; error 2^-56.2
    "double": (
        _h("0x1.55555555554f1p-2"),
        _h("0x1.11111111183c1p-3"),
        _h("0x1.ba1ba1b461011p-5"),
        _h("0x1.664f49aa51073p-6"),
        _h("0x1.226e122654a8ep-7"),
        _h("0x1.d6d93af1afd3dp-9"),
        _h("0x1.7d5b05f92f10ap-10"),
        _h("0x1.37fd5bb115f21p-11"),
        _h("0x1.d24fe3c08a4f9p-13"),
        _h("0x1.1e6c526cf61fdp-13"),
        _h("-0x1.bbe9e984bb96dp-16"),
        _h("0x1.777923b49e1d5p-14"),
        _h("-0x1.78c20f63e24f7p-15"),
        _h("0x1.5e2cca5d82c2dp-16"),
    ),
}

SINH: Final[Coefficients] = {
    # sinh(r) = r + r z P(z), z = r^2; error 2^-26.2
    "float": (
        _h("0x1.5554b00000000p-3"),
        _h("0x1.1227980000000p-7"),
    ),
    # sinh(r) = r + r z P(z), z = r^2; error 2^-61.7
    "double": (
        _h("0x1.5555555555559p-3"),
        _h("0x1.111111110f624p-7"),
        _h("0x1.a01a01b024cc2p-13"),
        _h("0x1.71ddf79fac595p-19"),
        _h("0x1.af601779c3f34p-26"),
    ),
}

COSH: Final[Coefficients] = {
    # cosh(r) = 1 + z P(z), z = r^2; error 2^-33.3
    "float": (
        _h("0x1.0000000000000p-1"),
        _h("0x1.5554e60000000p-5"),
        _h("0x1.6d4f3e0000000p-10"),
    ),
    # cosh(r) = 1 + z P(z), z = r^2; error 2^-58.0
    "double": (
        _h("0x1.000000000000bp-1"),
        _h("0x1.555555555025ap-5"),
        _h("0x1.6c16c18541090p-10"),
        _h("0x1.a01997871ac6fp-16"),
        _h("0x1.28af7f203d949p-22"),
    ),
}

ASIN: Final[Coefficients] = {
    # arcsin(x) = x + x z P(z), z = x^2 <= 1/4; error 2^-27.6
    "float": (
        _h("0x1.5555c80000000p-3"),
        _h("0x1.3302040000000p-4"),
        _h("0x1.747bbe0000000p-5"),
        _h("0x1.8c3dc40000000p-6"),
        _h("0x1.595d1c0000000p-5"),
    ),
    # arcsin(x) = x + x z P(z), z = x^2 <= 1/4; error 2^-59.8
    "double": (
        _h("0x1.5555555555577p-3"),
        _h("0x1.333333332e131p-4"),
        _h("0x1.6db6db7212688p-5"),
        _h("0x1.f1c71a94f2a25p-6"),
        _h("0x1.6e8bdee049b48p-6"),
        _h("0x1.1c49f05c05146p-6"),
        _h("0x1.ca1f8d88db566p-7"),
        _h("0x1.758588baedb39p-7"),
        _h("0x1.613c9242cfb77p-7"),
        _h("0x1.e5f529b4014ebp-9"),
        _h("0x1.639c904ac587cp-6"),
        _h("-0x1.57fda83e49850p-6"),
        _h("0x1.0b46cbd013c99p-5"),
    ),
}

ATAN: Final[Coefficients] = {
    # arctan(t) = t + t z P(z), z = t^2 <= 1; error 2^-28.5
    "float": (
        _h("-0x1.55553e0000000p-2"),
        _h("0x1.9991e40000000p-3"),
        _h("-0x1.2420860000000p-3"),
        _h("0x1.c08c540000000p-4"),
        _h("-0x1.5809560000000p-4"),
        _h("0x1.da2b940000000p-5"),
        _h("-0x1.fd82cc0000000p-6"),
        _h("0x1.642bb00000000p-7"),
        _h("-0x1.d3694e0000000p-10"),
    ),
    # arctan(t) = t + t z P(z), z = t^2 <= 1; error 2^-57.6
    "double": (
        _h("-0x1.5555555555526p-2"),
        _h("0x1.99999999955b1p-3"),
        _h("-0x1.249249237f4a9p-3"),
        _h("0x1.c71c717fcc5c1p-4"),
        _h("-0x1.745d11ae3f2f6p-4"),
        _h("0x1.3b136697cc6b6p-4"),
        _h("-0x1.110e511436db7p-4"),
        _h("0x1.e1bba59186a50p-5"),
        _h("-0x1.ae5e6f00f7d5fp-5"),
        _h("0x1.82dacaf5d9237p-5"),
        _h("-0x1.59a3ddfd98d24p-5"),
        _h("0x1.2c2e18da6859cp-5"),
        _h("-0x1.e9f93417fc410p-6"),
        _h("0x1.683bbad10d177p-6"),
        _h("-0x1.c78dc7b984cf5p-7"),
        _h("0x1.d7b63ea9b5f0dp-8"),
        _h("-0x1.7a368e71c614ap-9"),
        _h("0x1.b3f669ef0a0b3p-11"),
        _h("-0x1.3f32702ed4779p-13"),
        _h("0x1.bbe75338e25a9p-17"),
    ),
}

TANH: Final[Coefficients] = {
    # tanh(x) = x + x z P(z), z = x^2, |x| < 1; error 2^-27.7
    "float": (
        _h("-0x1.55553c0000000p-2"),
        _h("0x1.110be40000000p-3"),
        _h("-0x1.b9623a0000000p-5"),
        _h("0x1.6009b40000000p-6"),
        _h("-0x1.0460660000000p-7"),
        _h("0x1.2da26a0000000p-9"),
        _h("-0x1.77d4f20000000p-12"),
    ),
    # tanh(x) = x + x z P(z), z = x^2, |x| < 1; error 2^-56.2
    "double": (
        _h("-0x1.555555555550fp-2"),
        _h("0x1.111111110d7dfp-3"),
        _h("-0x1.ba1ba1b80fda0p-5"),
        _h("0x1.664f483685da7p-6"),
        _h("-0x1.226e2ebcb3cd2p-7"),
        _h("0x1.d6d30fa80e8b7p-9"),
        _h("-0x1.7d9bc924540e6p-10"),
        _h("0x1.35212a05a1bafp-11"),
        _h("-0x1.f335ccf60e3dap-13"),
        _h("0x1.8d794ca779899p-14"),
        _h("-0x1.2eb01b6e61712p-15"),
        _h("0x1.9e04471b93dabp-17"),
        _h("-0x1.cacbe5c6fd3a5p-19"),
        _h("0x1.5f270a23be7bdp-21"),
        _h("-0x1.0d03cd126e263p-24"),
    ),
}

CBRT: Final[Coefficients] = {
    # m^(-1/3), to be improved by iteration; error 2^-11.9
    "float": (
        _h("0x1.bb0fa20000000p+0"),
        _h("-0x1.4925320000000p+0"),
        _h("0x1.6d39dc0000000p-1"),
        _h("-0x1.44aefa0000000p-3"),
    ),
    # m^(-1/3), to be improved by iteration; error 2^-17.4
    "double": (
        _h("0x1.ffc9ace5e3208p+0"),
        _h("-0x1.3e32b153e7f0fp+1"),
        _h("0x1.6567504190358p+1"),
        _h("-0x1.e5ec54361eba7p+0"),
        _h("0x1.66c7963ded482p-1"),
        _h("-0x1.baa211ba93c87p-4"),
    ),
}

ERF: Final[Coefficients] = {
    # erf(x) = x + x P(z), z = x^2, below the crossover; error 2^-30.0
    "float": (
        _h("0x1.06eba80000000p-3"),
        _h("-0x1.8127400000000p-2"),
        _h("0x1.ce2d640000000p-4"),
        _h("-0x1.b801220000000p-6"),
        _h("0x1.544ad80000000p-8"),
        _h("-0x1.a615420000000p-11"),
        _h("0x1.4f9be00000000p-14"),
    ),
    # erf(x) = x + x P(z), z = x^2, below the crossover; error 2^-56.3
    "double": (
        _h("0x1.06eba8214db69p-3"),
        _h("-0x1.812746b037a25p-2"),
        _h("0x1.ce2f21a0458e7p-4"),
        _h("-0x1.b82ce313555f2p-6"),
        _h("0x1.565bcd2c83cc5p-8"),
        _h("-0x1.c02db93adee03p-11"),
        _h("0x1.f9a3ba6a0af38p-14"),
        _h("-0x1.f4dd0a0e20083p-17"),
        _h("0x1.ba6a801b68ee1p-20"),
        _h("-0x1.639e4a3d1df5bp-23"),
        _h("0x1.1370fc11ac484p-26"),
        _h("-0x1.c6d791c160e10p-30"),
        _h("0x1.3eb7500099d51p-33"),
    ),
}

ERF_TAIL: Final[Coefficients] = {
    # erfc(x) = exp(-x (1 + P(x))), above the crossover; error 2^-28.4
    "float": (
        _h("0x1.072f020000000p-3"),
        _h("0x1.457fd40000000p-1"),
        _h("0x1.af08260000000p-4"),
        _h("-0x1.76b8f20000000p-6"),
        _h("0x1.a4a1fa0000000p-9"),
        _h("-0x1.bf4dc20000000p-13"),
    ),
    # erfc(x) = exp(-x (1 + P(x))), above the crossover; error 2^-61.5
    "double": (
        _h("0x1.06ebacbcc8509p-3"),
        _h("0x1.45f2f9112e120p-1"),
        _h("0x1.a4f74f64b8ff1p-4"),
        _h("-0x1.39889c067af34p-6"),
        _h("-0x1.8cba2b3de8de2p-13"),
        _h("0x1.b30428b63ec47p-10"),
        _h("-0x1.1a0e05f0575e8p-11"),
        _h("-0x1.11c338d26b418p-15"),
        _h("0x1.eb1f68eb13f9bp-14"),
        _h("-0x1.1c4d98b67cef0p-14"),
        _h("0x1.aaf29a612078cp-16"),
        _h("-0x1.df9b84956f5eap-18"),
        _h("0x1.a2957ef8b6431p-20"),
        _h("-0x1.1d1cee4346ce0p-22"),
        _h("0x1.2ac84b6232135p-25"),
        _h("-0x1.d25445e78d6acp-29"),
        _h("0x1.feed5bfb0ad2cp-33"),
        _h("-0x1.5ea9f5726a163p-37"),
        _h("0x1.c59cb9d9d9fb3p-43"),
    ),
}

ERFC: Final[Coefficients] = {
    # (1 + 2 x) e^(x^2) erfc(x) = P((x - c) / (x + c)), c = 3563/1024; error 2^-27.5
    "float": (
        _h("0x1.3e258e0000000p+0"),
        _h("-0x1.1e9ab00000000p-3"),
        _h("-0x1.83b83c0000000p-7"),
        _h("0x1.94bc340000000p-4"),
        _h("-0x1.d921880000000p-4"),
        _h("0x1.661a520000000p-4"),
        _h("-0x1.88e9100000000p-5"),
        _h("0x1.3125e80000000p-6"),
        _h("-0x1.d1a2840000000p-9"),
        _h("-0x1.f0d52a0000000p-11"),
    ),
    # (1 + 2 x) e^(x^2) erfc(x) = P((x - c) / (x + c)), c = 3563/1024; error 2^-58.1
    "double": (
        _h("0x1.3e258e0283d2ap+0"),
        _h("-0x1.1e9aa5a91e387p-3"),
        _h("-0x1.83b7ac493d271p-7"),
        _h("0x1.94b83896ed161p-4"),
        _h("-0x1.d92467404ecbbp-4"),
        _h("0x1.66523ab6a7783p-4"),
        _h("-0x1.888e4a03196acp-5"),
        _h("0x1.2c7f8e5dfdc33p-6"),
        _h("-0x1.f4c31ca2f55e3p-9"),
        _h("-0x1.b14381cf7951cp-12"),
        _h("0x1.24d5c0e7c6006p-11"),
        _h("-0x1.b1c24ad62979dp-14"),
        _h("-0x1.8ce0a0081cc72p-15"),
        _h("0x1.7a60eee64bf44p-16"),
        _h("0x1.c69f030647906p-19"),
        _h("-0x1.ef5065a7048fbp-19"),
        _h("-0x1.fc7c5d414263bp-23"),
        _h("0x1.3e9dfa862070fp-21"),
        _h("0x1.94b6206024b84p-26"),
        _h("-0x1.8d8dff67eea70p-24"),
        _h("-0x1.89c3509f0a26bp-29"),
        _h("0x1.5f18bbaa501a9p-27"),
    ),
}

POW_ATANH: Final[Coefficients] = {
    # atanh(s) = s (1 + z/3 + z^2 P(z)), z = s^2; error 2^-66.3
    "double": (
        _h("0x1.9999999999b30p-3"),
        _h("0x1.2492492457d6bp-3"),
        _h("0x1.c71c722d64e40p-4"),
        _h("0x1.745ce9e3e6932p-4"),
        _h("0x1.3b1eebf11ca73p-4"),
        _h("0x1.0f7fec094c5dcp-4"),
        _h("0x1.0e4294b823c98p-4"),
    ),
}

POW_LOG2: Final[Coefficients] = {
    # log2(1 + f) = f P(f); for results in float; error 2^-35.8
    "double": (
        _h("0x1.71547652a1eacp+0"),
        _h("-0x1.715476565cfc7p-1"),
        _h("0x1.ec709ebb8ade4p-2"),
        _h("-0x1.71547097dcfcdp-2"),
        _h("0x1.277651feea2eap-2"),
        _h("-0x1.ec72b5866d176p-3"),
        _h("0x1.a63f43d4e5d4fp-3"),
        _h("-0x1.7141718b49b23p-3"),
        _h("0x1.45291fa790307p-3"),
        _h("-0x1.252f37a8eafd9p-3"),
        _h("0x1.2871c68621b4bp-3"),
        _h("-0x1.2488dd837c272p-3"),
        _h("0x1.3ce8d376daf42p-4"),
    ),
}

POW_EXP2: Final[Coefficients] = {
    # 2^r = P(r); for results in float; error 2^-29.0
    "double": (
        _h("0x1.0000000261c20p+0"),
        _h("0x1.62e430c82c1b7p-1"),
        _h("0x1.ebfbdadb1fc07p-3"),
        _h("0x1.c6aed45f0fc4ap-5"),
        _h("0x1.3b2dbc7f962d7p-7"),
        _h("0x1.5f4598565edddp-10"),
        _h("0x1.41d2f8add2393p-13"),
    ),
}
