import { attempt, SILENT_LOGGER } from '@nodepool-builder/image-builder/internal';
import { readTrustedKeys } from '@nodepool-builder/provenance';
import { SiteAttestation } from '../../attestation/site-attestation.ts';
import { isSigning, trustedKeyFiles } from '../../configuration/attestation.ts';
import type { Configuration } from '../../configuration/configuration.ts';
import type { Check } from './checks.ts';

/**
 * Checks that the site's key can sign, and that the trusted keys are valid. Returns no checks if the site has no such
 * settings.
 */
export function attestationChecks(configuration: Configuration): readonly Check[] {
  const { attestation, providers } = configuration;
  const gates = [configuration, ...providers.map(({ entry }) => entry)].flatMap(
    (place) => place['require-attestation'] ?? [],
  );
  const files = new Set([undefined, ...gates].flatMap((gate) => trustedKeyFiles(gate, attestation)));
  return [
    ...(isSigning(attestation) ? [signerCheck(configuration)] : []),
    ...[...files].map(trustedKeyCheck),
  ];
}

function signerCheck(configuration: Configuration): Check {
  const { attestation } = configuration;
  const [command] = attestation?.['sign-command'] ?? [];
  const subject = command === undefined ? `key ${attestation?.key}` : `sign-command ${command}`;
  return keyCheck(subject, async () => {
    const attester = await new SiteAttestation(configuration, SILENT_LOGGER).attester();
    await attester?.check();
    return `signs; key id: ${attester?.keyId}`;
  });
}

function trustedKeyCheck(file: string): Check {
  return keyCheck(`trusted key ${file}`, async () => {
    const [key] = await readTrustedKeys([file]);
    return `is a public key; key id: ${key?.keyId}`;
  });
}

function keyCheck(subject: string, use: () => Promise<string>): Check {
  return {
    area: 'attestations',
    subject,
    async *run(signal) {
      const { value: message, problem } = await attempt(subject, signal, use);
      yield problem ?? { subject, status: 'ok', message };
    },
  };
}
