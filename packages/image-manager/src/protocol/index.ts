export { cancelFunction, decodeCancel, encodeCancel } from './image-cancel.ts';
export {
  decodeFailure,
  encodeFailure,
  encodeOperatorCancellation,
  type Failure,
  GEARADMIN,
  withReason,
} from './job-failure.ts';
export { encodeResult } from './job-result.ts';
