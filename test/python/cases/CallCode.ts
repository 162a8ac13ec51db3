/** Code that calls other models, for the models of Calls.ts. */
import type { CaseServer } from "../PythonCase.ts"

/** Requests to add_sub and to count, whose arguments may be replaced. */
export const functions = `
def request_of(**others):
    a = pb.Tensor("A", np.array([[1, 2, 3, 4]], dtype=np.float32))
    b = pb.Tensor("B", np.array([[10, 20, 30, 40]], dtype=np.float32))
    given = dict(model_name="add_sub", inputs=[a, b], requested_output_names=["SUM"])
    return pb.InferenceRequest(**{**given, **others})
def counting(n, **others):
    tensor = pb.Tensor("IN", np.array([n], dtype=np.int32))
    return pb.InferenceRequest(
        **{**dict(model_name="count", inputs=[tensor], requested_output_names=["OUT"]), **others})
def values(responses):
    return [[t.as_numpy().tolist() for t in r.output_tensors()] for r in responses]
def failure(response):
    assert response.has_error() and not response.output_tensors()
    return str(int(response.error().code())) + " " + response.error().message()
`

/** Runs code behind these functions. */
export const call = ({ run }: CaseServer, code: string, model = "bls") => run(functions + code, model)
