/** Models that take a picture as it lies in its file. Imported by server and client alike. */
import { Model, Tensor } from "@nereid/core"
import * as Picture from "@nereid/image/Picture"

/** A picture as networks of the kind of MobileNet want it. */
export class Preprocess extends Model.Service<Preprocess>()("preprocess", {
  inputs: { IMAGE: Picture.field },
  /** Stretched to 224x224, by rows; red, green, blue; -1 is black and 1 is white. */
  outputs: { PIXELS: Tensor.FP32(224, 224, 3) },
  maxBatchSize: 8,
}) {}

/** A photograph of one digit, dark on lighter paper. */
export class PhotographedDigit extends Model.Service<PhotographedDigit>()("photographed_digit", {
  inputs: { IMAGE: Picture.field },
  outputs: { DIGIT: Tensor.scalar("INT32"), PROBABILITY: Tensor.scalar("FP32") },
  maxBatchSize: 8,
}) {}

/** A face detector by others (Ultra-Light-Fast-Generic-Face-Detector, RFB-320), one picture at a time. */
export class UltraFace extends Model.Service<UltraFace>()("ultraface", {
  /** Stretched to 320x240; red, green, blue planes; (value - 127) / 128. */
  inputs: { input: Tensor.FP32(1, 3, 240, 320) },
  /**
   * For each candidate: probabilities of background and face, and left, top, right, bottom as shares of the picture.
   */
  outputs: { scores: Tensor.FP32(1, 4420, 2), boxes: Tensor.FP32(1, 4420, 4) },
}) {}

/** The faces in a picture, the surest first; none is an answer, too. */
export class Faces extends Model.Service<Faces>()("faces", {
  inputs: { IMAGE: Picture.field },
  /** Left, top, right, bottom in shares of the picture. */
  outputs: { BOXES: Tensor.FP32("faces", 4), SCORES: Tensor.FP32("faces") },
}) {}
