"""The gRPC port as tools meet it that have no .proto files: reflection describes what the clients were generated from."""

import unittest

import grpc
from cases import SERVERS
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tritonclient.grpc import service_pb2

SERVICE = "inference.GRPCInferenceService"

# Numbers from here on are for fields that only one project knows.
FIRST_OWN_FIELD = 50000


class Reflection(unittest.TestCase):
    def setUp(self):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{SERVERS['plain']['grpc']}")
        self.addCleanup(self.channel.close)

    def test_the_services(self):
        services = ProtoReflectionDescriptorDatabase(self.channel).get_services()
        self.assertLessEqual({SERVICE, "grpc.health.v1.Health"}, set(services))

    def test_the_service_is_the_one_that_the_clients_know(self):
        described = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel)).FindServiceByName(SERVICE)
        known = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
        self.assertEqual(set(described.methods_by_name), set(known.methods_by_name))
        for name, method in known.methods_by_name.items():
            for side in ["input_type", "output_type"]:
                with self.subTest(name, side=side):
                    self.assertEqual(
                        fields(getattr(described.methods_by_name[name], side)), fields(getattr(method, side))
                    )

    def test_our_own_fields_have_numbers_beyond_the_protocols(self):
        described = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel)).FindServiceByName(SERVICE)
        metadata = described.methods_by_name["ModelMetadata"].output_type
        own = {field.number: field.name for field in metadata.fields if field.number >= FIRST_OWN_FIELD}
        self.assertEqual(own, {51000: "contract_json"})

    def test_health(self):
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        # An empty request asks for the whole server; SERVING is 1 in the first field.
        self.assertEqual(check(b"", timeout=30), b"\x08\x01")


def fields(message):
    return {field.number: (field.name, field.type) for field in message.fields if field.number < FIRST_OWN_FIELD}
