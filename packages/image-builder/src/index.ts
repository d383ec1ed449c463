export type { Conversion, FinishedBuild, ImageAttester, Material } from './attestation.ts';
export { BaseImageBuilder } from './base.ts';
export type { SourceRepository } from './build/source-repository.ts';
export { type CloudImage, cloudImage } from './cloud/cloud-image.ts';
export {
  type CloudClaim,
  type CloudEntry,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  type UploadPart,
} from './cloud/cloud-images.ts';
export { UploadRecords } from './cloud/upload-records.ts';
export { CloudError, type CloudErrorCode } from './cloud-error.ts';
export { COMMAND_MODULE } from './command.ts';
export type { BuildContext, BuildJob } from './context.ts';
export type { CheckResult } from './diagnosis/check-result.ts';
export { DIB_MODULE, DibBuilder, type DibSettings } from './dib.ts';
export { DIRECTORY_MODULE } from './directory/directory-module.ts';
export { DirectoryProvider } from './directory/directory-provider.ts';
export type { DiskImage } from './disk-image.ts';
export { ImageError, type ImageErrorCode } from './errors.ts';
export { FORMAT_NAMES, type ImageFormat } from './formats.ts';
export { HashedReader } from './hashed-reader.ts';
export type { ImageFilter } from './image-filter/image-filter.ts';
export { parseImageFilter, splitTags } from './image-filter/image-filter.ts';
export { latestImage } from './image-filter/latest-image.ts';
export type { TaggedImage } from './image-tags.ts';
export type {
  CapturedImage,
  CaptureRequest,
  ImageDescription,
  Instance,
  InstanceAddress,
  InstanceProvider,
  InstanceState,
  LaunchRequest,
  StoredCapture,
} from './instance/instance-provider.ts';
export type {
  BuilderEntries,
  BuilderEntry,
  BuilderModule,
  BuilderSection,
  BuilderService,
  BuilderServices,
  BuilderSite,
  Diagnostic,
  ImageBuilderClass,
  ImageServices,
  InstanceServices,
  ProviderEntry,
  ProviderHost,
  ProviderModule,
  SettingsContext,
} from './modules.ts';
export { readImages } from './repository/image-reader.ts';
export { ImageRepository } from './repository.ts';
export type { ObjectSchema, SettingsOf } from './settings-schema.ts';
export type {
  AttestationDocument,
  CandidateOptions,
  Checksums,
  ClaimRequest,
  DiscardOptions,
  Image,
  ImageCandidate,
  ImageFile,
  ImageKey,
  ImageProvider,
  Logger,
  OperationOptions,
  PartialUpload,
  Progress,
  ProviderImage,
  Snapshot,
  UploadRequest,
  UploadResult,
} from './types.ts';
