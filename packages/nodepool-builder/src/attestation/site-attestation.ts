import { hostname } from 'node:os';
import {
  type GatedFile,
  ImageError,
  type Logger,
  type OperationOptions,
  type RequiredAttestation,
} from '@nodepool-builder/image-builder';
import { createMask, hiddenTexts, isPublicVariable } from '@nodepool-builder/image-builder/internal';
import { openSigner, SiteAttester, type TrustedKey } from '@nodepool-builder/provenance';
import { isSigning } from '../configuration/attestation.ts';
import type { Configuration, DiskImageConfiguration } from '../configuration/configuration.ts';
import { packageVersion } from '../terms/version.ts';
import { refuseUnproven } from './gate.ts';
import { readTrusted } from './trusted-keys.ts';

/** The parts of a configuration that attestations depend on. */
export type AttestationConfiguration = Pick<
  Configuration,
  'attestation' | 'require-attestation' | 'diskimages'
>;

/**
 * The attestations of a site, according to one configuration. It reads the keys and loads the package for attestations
 * on first use, so that a daemon without these settings starts as fast as before.
 */
export class SiteAttestation {
  readonly #configuration: AttestationConfiguration;
  readonly #logger: Logger;
  #attester: Promise<SiteAttester> | undefined;

  constructor(configuration: AttestationConfiguration, logger: Logger) {
    this.#configuration = configuration;
    this.#logger = logger;
  }

  /**
   * Returns the attester of builds, conversions and uploads; undefined if the site signs nothing.
   *
   * @throws ImageError `invalid-configuration` if its key cannot be used
   */
  async attester(): Promise<SiteAttester | undefined> {
    if (!isSigning(this.#configuration.attestation)) return undefined;
    // After a failure the next job tries again, because the key may have been corrected.
    this.#attester ??= this.#open().catch((error: unknown) => {
      this.#attester = undefined;
      throw error;
    });
    return await this.#attester;
  }

  /** Returns the `require-attestation` of uploads to a provider; undefined if it requires no attestation. */
  requiredBy(entry: {
    readonly 'require-attestation'?: RequiredAttestation;
  }): RequiredAttestation | undefined {
    return entry['require-attestation'] ?? this.#configuration['require-attestation'];
  }

  /** Checks an imported file. @throws ImageError `attestation-refused`, `invalid-configuration` */
  async checkFile(
    required: RequiredAttestation,
    { name, fileName: path, sha256, attestations }: GatedFile,
    options: OperationOptions = {},
  ): Promise<void> {
    const subject = { kind: 'file', path, sha256 } as const;
    const keys = await this.trustedKeys(required);
    await refuseUnproven(name, { required, keys, subject, attestations, packages: noPackages }, options);
  }

  /** @throws ImageError `invalid-configuration` for a key that cannot be used */
  async trustedKeys(required: RequiredAttestation): Promise<readonly TrustedKey[]> {
    return await usable(() => readTrusted(this.#configuration.attestation, required));
  }

  async #open(): Promise<SiteAttester> {
    const { attestation = {} as never, diskimages } = this.#configuration;
    const signer = await usable(() => openSigner(attestation));
    const host = hostname();
    const attester = new SiteAttester({
      signer,
      builderId: attestation['builder-id'] ?? `nodepool-builder://${host}`,
      version: packageVersion(),
      host,
      billOfMaterials: attestation['bill-of-materials'],
      parameters: ({ name }) => {
        const configured = diskimages.find((diskimage) => diskimage.name === name);
        return configured === undefined ? {} : parametersOf(configured);
      },
      logger: this.#logger,
    });
    this.#logger.info(`builds and uploads are attested with the key ${signer.keyId}`);
    return attester;
  }
}

/** Throws, because an imported file has no package list here. */
async function noPackages(): Promise<never> {
  throw new Error('an imported file has no package list here');
}

/** Converts the error of a key into an `invalid-configuration` error. */
async function usable<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (cause) {
    throw new ImageError('invalid-configuration', (cause as Error).message, { cause });
  }
}

/** External parameters of a build: the disk image's configuration, without secrets. */
function parametersOf(diskimage: DiskImageConfiguration): Readonly<Record<string, unknown>> {
  const {
    digest,
    builder,
    settings,
    release,
    options = {},
    elementsDir,
    scriptDir,
    publicVariables,
  } = diskimage;
  const mask = createMask(hiddenTexts(diskimage));
  return {
    'configuration-digest': digest,
    builder,
    settings: maskedTexts(settings ?? {}, (_, text) => mask(text)),
    options: maskedTexts(options, (key, text) =>
      text === '' || isPublicVariable(key, publicVariables) ? mask(text) : '***',
    ),
    ...(release !== undefined && { release }),
    ...(elementsDir !== undefined && { 'elements-dir': elementsDir }),
    ...(scriptDir !== undefined && { 'script-dir': scriptDir }),
  };
}

function maskedTexts(value: unknown, mask: (key: string, text: string) => string): unknown {
  const text = JSON.stringify(value, (key, one: unknown) => (typeof one === 'string' ? mask(key, one) : one));
  return JSON.parse(text);
}
