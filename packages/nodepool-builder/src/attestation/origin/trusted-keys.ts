import type { TrustedKey } from '@nodepool-builder/provenance';
import type { AttestationSettings } from '../../configuration/attestation.ts';
import { errorMessage } from '../../terms/command-error.ts';
import { readTrusted } from '../trusted-keys.ts';

/** Keys for verifying signatures. */
export interface Keys {
  readonly keys: readonly TrustedKey[];
  /** Reason why there are no keys. */
  readonly withoutKeys?: string;
}

/** The part of a configuration that names its trusted keys. */
interface KeyConfiguration {
  readonly attestation?: AttestationSettings;
}

/** Reads the trusted keys of a configuration. Without them, the origin is shown, but nothing is proven. */
export async function readKeys(configuration: object): Promise<Keys> {
  const { attestation }: KeyConfiguration = configuration;
  const withoutKeys = 'no trusted keys are configured; set attestation.trusted-keys';
  if (attestation === undefined) return { keys: [], withoutKeys };
  try {
    const keys = await readTrusted(attestation);
    return { keys, ...(keys.length === 0 && { withoutKeys }) };
  } catch (error) {
    return { keys: [], withoutKeys: errorMessage(error) };
  }
}
