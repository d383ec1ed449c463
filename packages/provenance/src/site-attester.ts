import { randomBytes } from 'node:crypto';
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
  IMAGE_DIRECTORY,
  IMAGE_FILE,
  imageFileName,
  makeDirectory,
  writeAttestation,
  writeDurably,
} from '@nodepool-builder/image-builder/internal';
import { signalOf } from '@nodepool-builder/image-builder/plugin';

import { readAttestation, uploadDocument } from './attestation-directory.ts';
import { inThread } from './bom/in-thread.ts';
import { billOfMaterialsPath, readPackages } from './bom/read-packages.ts';
import {
  type BillOfMaterialsOutcome,
  type BuilderIdentity,
  buildStatement,
  conversionStatement,
} from './build-statement.ts';
import { payloadDigest, signStatement } from './bundle.ts';
import type { BundleText, Signer, Statement } from './types.ts';
import { type FinishedUpload, uploadStatement } from './upload-statement.ts';

/** Settings of a {@link SiteAttester}. */
export interface SiteAttesterSettings extends BuilderIdentity {
  readonly signer: Signer;
  /** True if builds get a bill of materials. */
  readonly billOfMaterials: boolean;
  /** External parameters of a build: `configuration-digest`, `builder`, `settings` without secrets. */
  readonly parameters?: (diskimage: DiskImage) => Readonly<Record<string, unknown>>;
  readonly logger?: Logger;
  /** Clock. Default: the system clock. */
  readonly now?: () => Date;
}

/** Attests builds, conversions and uploads with the key of the site. */
export class SiteAttester implements ImageAttester {
  readonly secretFiles: readonly string[];
  readonly wantsPackages: boolean;
  readonly #settings: SiteAttesterSettings;

  constructor(settings: SiteAttesterSettings) {
    const { keyFile } = settings.signer;
    this.secretFiles = keyFile === undefined ? [] : [keyFile];
    this.wantsPackages = settings.billOfMaterials;
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
    const { parameters } = this.#settings;
    const outcome = this.wantsPackages ? await this.#writeBillOfMaterials(build, options) : undefined;
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
  async attestUpload(upload: FinishedUpload, options: OperationOptions = {}): Promise<BundleText> {
    const { directory, 'image-id': imageId, 'upload-id': uploadId } = upload;
    const statement = uploadStatement(upload, this.#now(), await buildDigestOf(directory, imageId));
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

  /**
   * Writes the bill of materials. A build without a usable package list is not an error: its statement contains the
   * reason.
   */
  async #writeBillOfMaterials(
    { manifest, diskimage, directory }: FinishedBuild,
    options: OperationOptions,
  ): Promise<BillOfMaterialsOutcome> {
    const imageId = manifest['image-id'];
    const found = await readPackages(directory, imageId, options);
    if ('reason' in found) return this.#withoutBillOfMaterials(imageId, found.reason);
    if (found.skipped > 0) {
      const entries = found.skipped === 1 ? 'an entry' : `${found.skipped} entries`;
      const message = `${found.source} has ${entries} without a usable name or version`;
      this.#settings.logger?.warn(`image ${imageId}: ${message}; the bill of materials leaves them out`);
    }
    const files = manifest.files.map(({ format, sha256 }) => ({
      name: imageFileName(imageId, format),
      sha256,
    }));
    const finished = manifest.finished ?? this.#now().toISOString();
    const contents = { imageId, imageName: diskimage.name, finished, files, ...found };
    const signal = signalOf(options);
    const bill = await inThread('format', contents, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      return { reason: `cannot write the packages of ${found.source}: ${(error as Error).message}` };
    });
    if ('reason' in bill) return this.#withoutBillOfMaterials(imageId, bill.reason);
    const path = billOfMaterialsPath(directory, imageId);
    await makeDirectory(dirname(path), IMAGE_DIRECTORY);
    await writeDurably(path, bill.text, IMAGE_FILE);
    return { sha256: bill.sha256 };
  }

  #withoutBillOfMaterials(imageId: string, reason: string): BillOfMaterialsOutcome {
    this.#settings.logger?.warn(`image ${imageId} has no bill of materials: ${reason}`);
    return { reason };
  }

  #now(): Date {
    return this.#settings.now?.() ?? new Date();
  }
}

/**
 * Returns the SHA-256 of the payload of the build's attestation, in hexadecimal; undefined if the build was not
 * attested.
 */
export async function buildDigestOf(directory: string, imageId: string): Promise<string | undefined> {
  checkImageId(imageId);
  const found = await readAttestation(join(attestationDirectory(directory, imageId), BUILD_DOCUMENT));
  return found && payloadDigest(found.text);
}
