/** A short text that a model or its caller chose, such as a name: it cannot change how the texts beside it are read. */
import { visible } from "./VisibleText.ts"

export const ModelText = ({ text }: { readonly text: string }) => <bdi>{visible(text)}</bdi>
