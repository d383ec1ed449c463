import {
  type Image,
  ImageError,
  type ImageFile,
  type ImageProvider,
  type ImageRepository,
  type OperationOptions,
  type RequiredAttestation,
} from '@nodepool-builder/image-builder';
import { checksumsOf, conversionSource } from '@nodepool-builder/image-builder/internal';
import {
  type BuildFacts,
  checkGate,
  type FoundAttestation,
  type Package,
  readAttestations,
  readAttestedPackages,
  type TrustedKey,
  type VerifiedSubject,
  verifyChain,
} from '@nodepool-builder/provenance';

/** A subject whose origin must be proven, and the rules for it. */
export interface GateCheck {
  readonly required: RequiredAttestation;
  readonly keys: readonly TrustedKey[];
  readonly subject: VerifiedSubject;
  readonly attestations: readonly FoundAttestation[];
  /** Reads the packages that a build attested. */
  readonly packages: (build: BuildFacts) => Promise<readonly Package[]>;
}

/**
 * Throws unless the subject's origin is proven and follows all rules. Nothing changes.
 *
 * @param name the subject, with which the message begins
 * @throws ImageError `attestation-refused`
 */
export async function refuseUnproven(
  name: string,
  { required, keys, subject, attestations, packages }: GateCheck,
  options: OperationOptions = {},
): Promise<void> {
  const rule = await checkGate(required, verifyChain(subject, attestations, keys), packages);
  options.signal?.throwIfAborted();
  if (rule === undefined) return;
  throw new ImageError('attestation-refused', `${name} is refused by require-attestation: ${rule}`);
}

/** An image that is about to be uploaded. */
export interface GatedUpload {
  readonly image: Image;
  readonly repository: Pick<ImageRepository, 'directory'>;
  readonly provider: Pick<ImageProvider, 'name' | 'formats'>;
  readonly required: RequiredAttestation;
  /** Reads the public keys that the rules trust. */
  readonly keys: () => Promise<readonly TrustedKey[]>;
  /** True if this site attests its conversions. */
  readonly isSigning: boolean;
}

/**
 * Refuses to upload an image whose origin is not proven. Reads the whole file, because a recorded digest proves
 * nothing.
 *
 * @returns the file that was checked, with its checksums: the one to upload, or to convert
 * @throws ImageError `attestation-refused`, `invalid-configuration`
 */
export async function checkUpload(
  { image, repository: { directory }, provider, required, keys: readKeys, isSigning }: GatedUpload,
  { signal }: Required<Pick<OperationOptions, 'signal'>>,
): Promise<ImageFile | undefined> {
  const name = `the upload of image ${image.id} to ${provider.name}`;
  if (image.files.length === 0) {
    throw new ImageError(
      'attestation-refused',
      `${name} is refused by require-attestation: it has no file, and snapshots are not attested; set formats of the disk image`,
    );
  }
  const present = provider.formats.flatMap(
    (format) => image.files.find((file) => file.format === format) ?? [],
  )[0];
  const file = present ?? conversionSource(image.files);
  if (file === undefined) return undefined; // no such format can be made, which the upload reports
  if (present === undefined && !isSigning) {
    throw new ImageError(
      'attestation-refused',
      `${name} is refused by require-attestation: the conversion from ${file.format} would not be attested; ` +
        'set attestation.key, or have the image built in a format of the provider',
    );
  }
  const keys = await readKeys();
  const attestations = await readAttestations(directory, image.id);
  const checksums = await checksumsOf(file.path, { signal });
  const files = [{ path: file.path, format: file.format, sha256: checksums.sha256 }];
  const subject = { kind: 'image', imageId: image.id, files } as const;
  const packages: GateCheck['packages'] = (build) => readAttestedPackages(directory, image.id, build);
  await refuseUnproven(name, { required, keys, subject, attestations, packages }, { signal });
  return { ...file, checksums };
}
