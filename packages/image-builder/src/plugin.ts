/** Base class and helpers for a provider in a package of its own. As stable as the main entry. */

export { BandwidthLimit } from './bandwidth-limit.ts';
export { signalOf } from './cancellation.ts';
export { type CloudImage, cloudImage, type DescribedImage } from './cloud/cloud-image.ts';
export {
  type CloudClaim,
  type CloudEntry,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  type UploadPart,
} from './cloud/cloud-images.ts';
export { type PollOptions, poll } from './cloud/poll.ts';
export { UploadRecords } from './cloud/upload-records.ts';
export {
  CloudError,
  type CloudErrorCode,
  type CloudErrorOptions,
  cloudError,
  type RemedyTable,
  remedyFor,
  unlessAbsent,
} from './cloud-error.ts';
export { HttpAgent, type HttpAgentOptions } from './http/http-agent.ts';
export {
  HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type HttpResponse,
} from './http/http-client.ts';
export {
  type ListBounds,
  type ListOptions,
  type ListPage,
  listAll,
  type PageRequest,
  type ResponseMeter,
  responseMeter,
} from './http/list-pages.ts';
export {
  type Clock,
  type Retry,
  type RetryLimits,
  type RetryOptions,
  RetryPolicy,
} from './http/retry-policy.ts';
export { combineFilters, OWN_ACCOUNT } from './image-filter/image-filter.ts';
export { IMAGE_TAGS, type TaggedImage } from './image-tags.ts';
export { JsonReader } from './json-reader.ts';
export { steadyProgress } from './progress.ts';
