import { stat } from 'node:fs/promises';
import type { Diagnostic, RequiredAttestation } from '@nodepool-builder/image-builder';
import { openSigner, readTrustedKeys } from '@nodepool-builder/provenance';
import { type AttestationSettings, isSigning, trustedKeyFiles } from './attestation.ts';
import type { ConfigurationParts } from './parts.ts';

/**
 * Reports errors in `attestation` and each `require-attestation` that their schema cannot express, and errors of the
 * files that they name.
 */
export async function attestationDiagnostics(parts: ConfigurationParts): Promise<readonly Diagnostic[]> {
  const { attestation } = parts.general;
  const gates = [...gatesOf(parts)];
  const settings = attestation === undefined ? [] : [...settingsDiagnostics(attestation)];
  const trust = gates.flatMap(([pointer, gate]) => [...trustDiagnostics(pointer, gate, attestation)]);
  if (settings.length > 0 || trust.length > 0) return [...settings, ...trust];
  const files = await Promise.all([
    ...(isSigning(attestation) ? [signerDiagnostics(attestation)] : []),
    ...keyDiagnostics('/attestation/trusted-keys', attestation?.['trusted-keys']),
    ...gates.flatMap(([pointer, { 'trusted-keys': keys }]) =>
      keyDiagnostics(`${pointer}/trusted-keys`, keys),
    ),
  ]);
  return files.flat();
}

/** Each `require-attestation`, with its JSON pointer. */
function* gatesOf({
  general,
  providers,
  diskimages,
}: ConfigurationParts): Iterable<readonly [pointer: string, gate: RequiredAttestation]> {
  const key = 'require-attestation';
  if (general[key] !== undefined) yield [`/${key}`, general[key]];
  for (const { pointer, entry } of providers) {
    if (entry[key] !== undefined) yield [`${pointer}/${key}`, entry[key]];
  }
  for (const { pointer, values, module } of diskimages) {
    if (module === undefined || !(key in module.settings.properties)) continue;
    const gate = values[key] as RequiredAttestation | undefined;
    if (gate !== undefined) yield [`${pointer}/${key}`, gate];
  }
}

function* settingsDiagnostics(settings: AttestationSettings): Iterable<Diagnostic> {
  const { key, 'sign-command': command, 'public-key': publicKey, 'builder-id': builder } = settings;
  if (key !== undefined && command !== undefined) {
    yield { pointer: '/attestation', reason: 'has key and sign-command', remedy: 'remove one of the two' };
  }
  if (command !== undefined && publicKey === undefined) {
    const reason = 'needs public-key, because a command does not provide it';
    yield {
      pointer: '/attestation/sign-command',
      reason,
      remedy: 'set public-key to a PEM file with the public key',
    };
  }
  if (!isSigning(settings) && settings['trusted-keys'] === undefined) {
    const remedy = 'set key, or sign-command with public-key, or trusted-keys on a host that only verifies';
    yield { pointer: '/attestation', reason: 'has no key', remedy };
  }
  if (builder !== undefined && !URL.canParse(builder)) {
    const remedy = 'write it as https://HOST/NAME, or remove it';
    yield { pointer: '/attestation/builder-id', reason: 'is not a URI', remedy };
  }
}

function* trustDiagnostics(
  pointer: string,
  gate: RequiredAttestation,
  settings: AttestationSettings | undefined,
): Iterable<Diagnostic> {
  if (trustedKeyFiles(gate, settings).length > 0 || isSigning(settings)) return;
  const reason = 'names no trusted-keys, and attestation has none';
  yield { pointer, reason, remedy: 'set trusted-keys to the public keys of the builders' };
}

/** Permissions of the group and of all other users. */
const OTHERS = 0o077;

/** Checks the signing key. Access by another user or from another host is only a warning. */
async function signerDiagnostics(settings: AttestationSettings): Promise<readonly Diagnostic[]> {
  const { key } = settings;
  const pointer = key === undefined ? '/attestation/public-key' : '/attestation/key';
  if (key !== undefined) {
    const mode = await stat(key).then(
      (state) => state.mode,
      () => 0,
    );
    if ((mode & OTHERS) !== 0) {
      const reason = `"${key}" can be used by other users: its mode is ${(mode & 0o777).toString(8)}`;
      return [{ pointer, severity: 'job-error', reason, remedy: `run chmod 600 ${key}` }];
    }
  }
  return await problemOf(pointer, () => openSigner(settings));
}

function keyDiagnostics(
  pointer: string,
  files: readonly string[] | undefined,
): readonly Promise<readonly Diagnostic[]>[] {
  return (files ?? []).map((file, index) => problemOf(`${pointer}/${index}`, () => readTrustedKeys([file])));
}

/** Returns the error of a key as a diagnostic. The part of its message after the last semicolon is the remedy. */
async function problemOf(pointer: string, use: () => Promise<unknown>): Promise<readonly Diagnostic[]> {
  try {
    await use();
    return [];
  } catch (error) {
    const message = (error as Error).message.replace(/^the (?:private|public) key (?=")/, '');
    const at = message.lastIndexOf('; ');
    const [reason, remedy] =
      at === -1 ? [message, 'correct it'] : [message.slice(0, at), message.slice(at + 2)];
    return [{ pointer, severity: 'job-error', reason, remedy }];
  }
}
