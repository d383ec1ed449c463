import type { TrustedKey } from '@nodepool-builder/provenance';
import { messageOf } from '../commands/output.ts';

/** Keys that signatures are verified with. */
export interface Keys {
  readonly keys: readonly TrustedKey[];
  /** Why there are none. */
  readonly withoutKeys?: string;
}

/** The part of a configuration that names its trusted keys. */
interface KeyConfiguration {
  readonly attestation?: { readonly 'trusted-keys'?: readonly string[] };
}

/** Reads the trusted keys of a configuration. Without them, everything is shown, but nothing is proven. */
export async function readKeys(configuration: object): Promise<Keys> {
  const { attestation }: KeyConfiguration = configuration;
  const files = attestation?.['trusted-keys'] ?? [];
  if (files.length === 0) {
    return { keys: [], withoutKeys: 'no trusted keys are configured; set attestation.trusted-keys' };
  }
  try {
    const { readTrustedKeys } = await import('@nodepool-builder/provenance');
    return { keys: await readTrustedKeys(files) };
  } catch (error) {
    return { keys: [], withoutKeys: messageOf(error) };
  }
}
