export type { Conversion, FinishedBuild, ImageAttester, Material } from './attestation.ts';
export type { GatedFile, RequiredAttestation } from './attestation-gate.ts';
export { BaseImageBuilder } from './base.ts';
export type { SourceRepository } from './build/source-repository.ts';
export { COMMAND_MODULE, type CommandSettings } from './command.ts';
export type { BuildContext, BuildJob, RunOptions } from './context.ts';
export type { CheckArea, CheckResult } from './diagnosis/check-result.ts';
export { DIB_MODULE, DibBuilder, type DibSettings } from './dib.ts';
export { DIRECTORY_MODULE } from './directory/directory-module.ts';
export { DirectoryProvider, type DirectoryProviderOptions } from './directory/directory-provider.ts';
export type { DirectoryEntry } from './directory/manifest.ts';
export type { BootValidation, DiskImage, ImageValidation } from './disk-image.ts';
export { ImageError, type ImageErrorCode } from './errors.ts';
export { FORMAT_NAMES, type ImageFormat } from './formats.ts';
export { HashedReader, type HashedReaderOptions } from './hashed-reader.ts';
export {
  type FilterEntry,
  type ImageFilter,
  parseImageFilter,
  splitTags,
} from './image-filter/image-filter.ts';
export { type LatestImage, latestImage, type RefusedImage } from './image-filter/latest-image.ts';
export type {
  CapturedImage,
  CaptureRequest,
  ImageDescription,
  Instance,
  InstanceAddress,
  InstanceProvider,
  InstanceState,
  LaunchRequest,
  Probe,
  SaveOptions,
  StoredCapture,
} from './instance/instance-provider.ts';
export type { Manifest, ManifestFile } from './manifest.ts';
export type {
  BuilderEntries,
  BuilderEntry,
  BuilderModule,
  BuilderSection,
  BuilderService,
  BuilderServices,
  BuilderSite,
  BuildRequest,
  CloudImageEntry,
  CloudImageKeys,
  Diagnostic,
  ImageBuilderClass,
  ImageChoice,
  ImageServices,
  ImageSupport,
  ImageTraits,
  InstanceServices,
  InstanceSupport,
  PreparedProvider,
  ProviderEntry,
  ProviderHost,
  ProviderImages,
  ProviderModule,
  ProviderServices,
  SettingsContext,
} from './modules.ts';
export type { Environment } from './process/inherited-environment.ts';
export type { Accelerator } from './qemu/machine-arguments.ts';
export { readImages } from './repository/image-reader.ts';
export type { FileOptions, ImageRepositoryEvents } from './repository/repository-types.ts';
export { ImageRepository } from './repository.ts';
export type { ObjectSchema, SettingsOf, SettingsSchema } from './settings-schema.ts';
export type {
  AttestationDocument,
  CandidateOptions,
  CheckOptions,
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
