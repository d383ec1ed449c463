import { WorkFailError } from '@nodepool-builder/gearman-node';
import type {
  AttestationDocument,
  ClaimRequest,
  ImageFile,
  ImageFormat,
  ImageProvider,
  ImageRepository,
  UploadResult,
} from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import { buildDigestOf, type SiteAttester, uploadDocument } from '@nodepool-builder/provenance';
import type { ProviderConfiguration } from '../configuration/configuration.ts';
import { errorLine } from '../terms/command-error.ts';
import { attestationsOf, billOfMaterialsOf } from './documents.ts';
import type { SiteAttestation } from './site-attestation.ts';

/** Property of an uploaded image: SHA-256 of the payload of its build's attestation. */
const PROPERTY = 'attestation-sha256';

/** An upload that has succeeded. */
interface FinishedUpload {
  readonly request: ClaimRequest;
  readonly file: ImageFile;
  readonly uploaded: UploadResult;
  readonly provider: ImageProvider;
}

/** Attests one upload of a site that signs. */
export class UploadAttestation {
  readonly attester: SiteAttester;
  readonly #configuration: ProviderConfiguration;
  readonly #repository: ImageRepository;
  #bundles: readonly string[] = [];

  private constructor(
    attester: SiteAttester,
    configuration: ProviderConfiguration,
    repository: ImageRepository,
  ) {
    this.attester = attester;
    this.#configuration = configuration;
    this.#repository = repository;
  }

  /**
   * Checks that the site can sign, because after an upload it would be too late.
   *
   * @returns undefined if it signs nothing
   * @throws ImageError `invalid-configuration`, WorkFailError
   */
  static async open(
    site: Pick<SiteAttestation, 'attester'>,
    configuration: ProviderConfiguration,
    repository: ImageRepository,
  ): Promise<UploadAttestation | undefined> {
    const attester = await site.attester();
    if (attester === undefined) return undefined;
    try {
      await attester.check();
    } catch (cause) {
      throw new WorkFailError(`the upload cannot be attested: ${errorLine(cause)}`, { cause });
    }
    return new UploadAttestation(attester, configuration, repository);
  }

  /** Bundles about the build and the conversion, and about the upload once it is attested. */
  get bundles(): readonly string[] {
    return this.#bundles;
  }

  /** Properties of the image in the provider. There are none if its build was not attested. */
  async metadata(imageId: string): Promise<Readonly<Record<string, string>>> {
    const digest = await buildDigestOf(this.#repository.directory, imageId);
    return digest === undefined ? {} : { [PROPERTY]: digest };
  }

  /** Attestations and the bill of materials, which a provider stores with the image. */
  async documents(imageId: string, format: ImageFormat): Promise<readonly AttestationDocument[]> {
    const { directory } = this.#repository;
    const billOfMaterials = await billOfMaterialsOf(directory, imageId);
    return [
      ...(await attestationsOf(directory, imageId, format)),
      ...(billOfMaterials ? [billOfMaterials] : []),
    ];
  }

  /**
   * Signs the statement of an upload, and has the provider store it with the image.
   *
   * @returns the reason why the image cannot stay in the provider; undefined if it can
   */
  async attest(
    { request, file, uploaded, provider }: FinishedUpload,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    try {
      const { imageId, imageName, uploadId } = request;
      const { name, module, attributes } = this.#configuration;
      const region = attributes.region_name;
      const { sha256 } = file.checksums ?? (await checksumsOf(file.path, { signal }));
      const { directory } = this.#repository;
      const finished = {
        'image-id': imageId,
        'image-name': imageName,
        provider: name,
        'provider-type': module.type,
        ...(typeof region === 'string' && { region }),
        'upload-id': uploadId,
        'external-id': uploaded.externalId,
        format: file.format,
        sha256,
        'reported-digests': uploaded.reported ?? {},
        ...(uploaded.isConverted && { converted: true }),
        directory,
      };
      // The image is not deleted before the statement is stored next to it.
      const text = await this.#repository.withImage(
        imageId,
        async () => await this.attester.attestUpload(finished, { signal }),
      );
      const document = { name: uploadDocument(uploadId), text };
      const documents = [...(await attestationsOf(directory, imageId, file.format)), document];
      await provider.addAttestations?.(uploaded.externalId, documents, { signal });
      this.#bundles = documents.map((one) => one.text);
      return undefined;
    } catch (error) {
      return `the upload could not be attested: ${errorLine(error)}`;
    }
  }
}
