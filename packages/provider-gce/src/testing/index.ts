/** A double of Google Cloud for tests. */
export {
  GceDouble,
  type GceDoubleOptions,
  type GceFault,
  type GceRequest,
  type ImageState,
} from './gce-double.ts';
export { GoogleRefusal } from './model.ts';
export type { OperationFailure } from './operations.ts';
export { TokenDouble, type TokenRefusal } from './token-double.ts';
