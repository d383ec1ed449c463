import type { Logger } from '@nodepool-builder/image-builder';
import { attempt } from '@nodepool-builder/image-builder/internal';
import { readTrustedKeys } from '@nodepool-builder/provenance';
import { SiteAttestation } from '../../attestation/site-attestation.ts';
import { isSigning, trustedKeyFiles } from '../../configuration/attestation.ts';
import type { Configuration } from '../../configuration/configuration.ts';
import type { Check } from './checks.ts';

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

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
  return {
    area: 'attestations',
    subject,
    async *run(signal) {
      const { value, problem } = await attempt(subject, signal, async () => {
        const attester = await new SiteAttestation(configuration, SILENT).attester();
        await attester?.check();
        return attester?.keyId;
      });
      yield problem ?? { subject, status: 'ok', message: `signs; key id: ${value}` };
    },
  };
}

function trustedKeyCheck(file: string): Check {
  const subject = `trusted key ${file}`;
  return {
    area: 'attestations',
    subject,
    async *run(signal) {
      const { value, problem } = await attempt(subject, signal, async () => {
        return await readTrustedKeys([file]);
      });
      yield problem ?? { subject, status: 'ok', message: `is a public key; key id: ${value?.[0]?.keyId}` };
    },
  };
}
