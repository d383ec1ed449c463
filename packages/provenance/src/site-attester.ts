import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { dirname, join } from 'node:path';
import type {
  Conversion,
  DiskImage,
  FinishedBuild,
  ImageAttester,
  Logger,
  OperationOptions,
} from '@nodepool-builder/image-builder';

import {
  attestationDirectory,
  BUILD_DOCUMENT,
  checkImageId,
  conversionDocument,
  imageFileName,
  makeDirectory,
  writeAttestation,
} from '@nodepool-builder/image-builder/module-kit';
import { readAttestation, uploadDocument } from './attestation-directory.ts';
import { billOfMaterialsPath } from './attested-packages.ts';
import { writeBillOfMaterials } from './bom/bill-of-materials.ts';
import { readPackages } from './bom/read-packages.ts';
import {
  type BillOfMaterialsOutcome,
  type BuilderIdentity,
  buildStatement,
  conversionStatement,
} from './build-statement.ts';
import { payloadDigest, signStatement } from './bundle.ts';
import type { BundleText, Signer, Statement } from './types.ts';
import { type UploadFacts, uploadStatement } from './upload-statement.ts';

/** Settings of a {@link SiteAttester}. */
export interface SiteAttesterSettings extends BuilderIdentity {
  readonly signer: Signer;
  /** Whether builds get a bill of materials. */
  readonly billOfMaterials: boolean;
  /** External parameters of a build: `configuration-digest`, `builder`, `settings` without secrets. */
  readonly parameters?: (diskimage: DiskImage) => Readonly<Record<string, unknown>>;
  readonly logger?: Logger;
  /** Default: the system's clock. */
  readonly now?: () => Date;
}

/** Mode of `<image-id>.d`, which is public as the image is. */
const DIRECTORY_MODE = 0o755;

/** Attests builds, conversions and uploads with the key of the site. */
export class SiteAttester implements ImageAttester {
  readonly secretFiles: readonly string[];
  readonly #settings: SiteAttesterSettings;

  constructor(settings: SiteAttesterSettings) {
    const { keyFile } = settings.signer;
    this.secretFiles = keyFile === undefined ? [] : [keyFile];
    this.#settings = settings;
  }

  /** Id of the key that signs. */
  get keyId(): string {
    return this.#settings.signer.keyId;
  }

  /** Signs random bytes. @throws ProvenanceError `signing-failed` */
  async check(): Promise<void> {
    await this.#settings.signer.sign(randomBytes(32));
  }

  /**
   * Writes the bill of materials and the attestation of a build.
   *
   * @throws ProvenanceError `signing-failed`, `bundle-too-large`
   */
  async attestBuild(build: FinishedBuild, options: OperationOptions = {}): Promise<void> {
    const { parameters, billOfMaterials } = this.#settings;
    const outcome = billOfMaterials ? await this.#writeBillOfMaterials(build, options) : undefined;
    const statement = buildStatement(build, this.#settings, parameters?.(build.diskimage) ?? {}, outcome);
    await this.#write(build.directory, build.manifest['image-id'], BUILD_DOCUMENT, statement, options);
  }

  /** Writes the attestation of a converted file. @throws ProvenanceError `signing-failed` */
  async attestConversion(conversion: Conversion, options: OperationOptions = {}): Promise<void> {
    const { directory, imageId, file } = conversion;
    const statement = conversionStatement(conversion, this.#settings, this.#now());
    await this.#write(directory, imageId, conversionDocument(file.format), statement, options);
  }

  /** Writes the attestation of an upload, and returns it. @throws ProvenanceError `signing-failed` */
  async attestUpload(facts: UploadFacts, options: OperationOptions = {}): Promise<BundleText> {
    const { directory, imageId, uploadId } = facts;
    const statement = uploadStatement(facts, this.#now(), await buildDigestOf(directory, imageId));
    return await this.#write(directory, imageId, uploadDocument(uploadId), statement, options);
  }

  async #write(
    directory: string,
    imageId: string,
    name: string,
    statement: Statement,
    { signal }: OperationOptions,
  ): Promise<BundleText> {
    const text = await signStatement(statement, this.#settings.signer, signal);
    await writeAttestation(directory, imageId, { name, text });
    return text;
  }

  /** An image whose packages cannot be read is no error: its statement contains the reason. */
  async #writeBillOfMaterials(
    { manifest, diskimage, directory }: FinishedBuild,
    options: OperationOptions,
  ): Promise<BillOfMaterialsOutcome> {
    const imageId = manifest['image-id'];
    const files = manifest.files.map(({ format, sha256 }) => {
      const name = imageFileName(imageId, format);
      return { format, name, path: join(directory, name), sha256 };
    });
    const found = await readPackages({ imageId, directory, files }, options);
    if ('reason' in found) {
      this.#settings.logger?.warn(`image ${imageId} has no bill of materials: ${found.reason}`);
      return found;
    }
    const path = billOfMaterialsPath(directory, imageId);
    await makeDirectory(dirname(path), DIRECTORY_MODE);
    const finished = manifest.finished ?? this.#now().toISOString();
    await writeBillOfMaterials(path, { imageId, imageName: diskimage.name, finished, files, ...found });
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
    return { sha256: hash.digest('hex') };
  }

  #now(): Date {
    return this.#settings.now?.() ?? new Date();
  }
}

/** SHA-256 of the payload of the build's attestation, in hexadecimal; undefined if the build was not attested. */
export async function buildDigestOf(directory: string, imageId: string): Promise<string | undefined> {
  checkImageId(imageId);
  const found = await readAttestation(join(attestationDirectory(directory, imageId), BUILD_DOCUMENT));
  return found && payloadDigest(found.text);
}
