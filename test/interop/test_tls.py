"""TLS and mutual TLS, as each client asks for it."""

import os
import ssl

import gevent.ssl
import numpy as np
import tritonclient.http
import tritonclient.http.aio
from cases import CERTIFICATES, Case, every_client

ROW = np.ones((1, 16), np.int32)


def file(name):
    return os.path.join(CERTIFICATES, name)


class Tls(Case):
    # Whom the client trusts, and whether it shows a certificate of its own.
    authority = "authority.crt"
    shows_certificate = False

    def connect(self):
        if self.module is tritonclient.http:
            return super().connect(ssl=True, ssl_context_factory=lambda: self.context(gevent.ssl))
        if self.module is tritonclient.http.aio:
            return super().connect(ssl=True, ssl_context=self.context(ssl))
        options = {"private_key": file("client.key"), "certificate_chain": file("client.crt")}
        shown = options if self.shows_certificate else {}
        return super().connect(ssl=True, root_certificates=file(self.authority), **shown)

    def context(self, module):
        context = module.create_default_context(cafile=file(self.authority))
        if self.shows_certificate:
            context.load_cert_chain(file("client.crt"), file("client.key"))
        return context

    async def assert_answered(self):
        self.assertIs(await self.call("is_server_ready"), True)
        result = await self.infer("simple", [self.input("INPUT0", ROW), self.input("INPUT1", ROW)])
        self.assert_same(result.as_numpy("OUTPUT0"), ROW + ROW)

    async def assert_refused(self):
        if self.protocol == "grpc":
            await self.failure("unavailable", self.call("is_server_ready"))
        else:
            with self.assertRaises(Exception):
                await self.call("is_server_ready")


@every_client
class WithTls(Tls):
    server = "secure"

    async def test_answers(self):
        await self.assert_answered()


@every_client
class OfAnotherAuthority(Tls):
    server = "secure"
    authority = "other.crt"

    async def test_is_not_trusted(self):
        await self.assert_refused()


@every_client
class WithoutTls(Case):
    server = "secure"

    async def test_is_refused(self):
        with self.assertRaises(Exception):
            await self.call("get_server_metadata")


@every_client
class Mutual(Tls):
    server = "mutual"
    shows_certificate = True

    async def test_answers_those_who_show_a_certificate(self):
        await self.assert_answered()


@every_client
class MutualWithoutCertificate(Tls):
    server = "mutual"

    async def test_is_refused(self):
        await self.assert_refused()
