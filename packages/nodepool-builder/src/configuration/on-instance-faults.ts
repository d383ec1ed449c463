import type { SettingsContext } from '@nodepool-builder/image-builder';
import { parseFingerprint } from '@nodepool-builder/on-instance';
import type { Fault } from './fault.ts';
import { type Finding, toFault } from './finding.ts';
import { INSTANCE_BUILDER, LOCAL_PROVIDER, type OnInstanceSource, shellOf } from './on-instance-source.ts';
import type { ConfigurationSource, DiskImageSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

/** An entry of `diskimages` with a block `on-instance`, and where they stand. */
interface Entry {
  readonly pointer: string;
  readonly block: OnInstanceSource;
  readonly context: SettingsContext;
}

/** What the schema leaves open of images that are made on a running machine. */
export function onInstanceFaults(
  document: YamlDocument,
  source: ConfigurationSource,
  context: SettingsContext,
): readonly Fault[] {
  return (source.diskimages ?? [])
    .flatMap((diskimage, index) => findings(diskimage, `/diskimages/${index}`, context))
    .map((finding) => toFault(document, finding));
}

function findings(
  { builder = 'dib', 'on-instance': block }: DiskImageSource,
  place: string,
  context: SettingsContext,
): readonly Finding[] {
  const pointer = `${place}/on-instance`;
  if (block === undefined) {
    if (builder !== INSTANCE_BUILDER) return [];
    const reason = `lacks the key "on-instance", which builder: ${builder} needs`;
    return [{ pointer: place, reason, remedy: 'say there at least what is booted, and what is run on it' }];
  }
  if (builder === 'dib') {
    const remedy = `write "builder: ${INSTANCE_BUILDER}" beside it, or remove it`;
    return [{ pointer, reason: `means nothing to the builder ${builder}`, remedy }];
  }
  return CHECKS.flatMap((check) => check({ pointer, block, context }));
}

const CHECKS: readonly ((entry: Entry) => readonly Finding[])[] = [
  machineProvider,
  connection,
  shell,
  steps,
  setup,
];

function machineProvider({ pointer: place, block, context }: Entry): readonly Finding[] {
  const { provider: name = LOCAL_PROVIDER } = block;
  const pointer = `${place}/provider`;
  const remedy = 'name one that runs instances, or none, for QEMU on this host';
  const module = context.providers.get(name);
  if (module === undefined) return [{ pointer, reason: `"${name}" is not among providers`, remedy }];
  if (module.openInstances !== undefined) return [];
  return [{ pointer, reason: `"${name}" is of type ${module.type}: it runs no machines`, remedy }];
}

function connection({ pointer: place, block: { connection: by = 'ssh', winrm } }: Entry): readonly Finding[] {
  if (by === 'winrm' && winrm === undefined) {
    const reason = 'lacks the key "winrm", which connection: winrm needs';
    return [{ pointer: place, reason, remedy: 'name the file with the password there: password-file' }];
  }
  if (winrm === undefined) return [];
  if (by === 'winrm') return certificate(`${place}/winrm`, winrm);
  const reason = `means nothing, as the connection is ${by}`;
  return [{ pointer: `${place}/winrm`, reason, remedy: 'write "connection: winrm", or remove it' }];
}

/** How the certificate of the machine is verified. */
function certificate(
  pointer: string,
  { fingerprint, 'ca-file': caFile }: NonNullable<OnInstanceSource['winrm']>,
): readonly Finding[] {
  if (fingerprint !== undefined && parseFingerprint(fingerprint) === undefined) {
    const reason = 'is no SHA-256 fingerprint of a certificate';
    const remedy =
      'write 64 hexadecimal digits, with or without colons, or SHA256: and 43 characters of base64';
    return [{ pointer: `${pointer}/fingerprint`, reason, remedy }];
  }
  if (fingerprint !== undefined || caFile !== undefined) return [];
  const reason =
    'has neither "fingerprint" nor "ca-file": only a certificate that the console announces is trusted';
  const remedy =
    'add one of them, unless the base image prints the fingerprint of its certificate to the console';
  return [{ pointer, reason, remedy, severity: 'warning' }];
}

function shell({ pointer: place, block }: Entry): readonly Finding[] {
  if (shellOf(block) === 'powershell') return [];
  const found: Finding[] = [];
  if (block.connection === 'winrm') {
    const reason = 'is posix, which WinRM does not bring';
    found.push({ pointer: `${place}/shell`, reason, remedy: 'use powershell, or connection: ssh' });
  }
  if (block.sysprep) {
    const reason = 'needs Windows, but the shell is posix';
    found.push({ pointer: `${place}/sysprep`, reason, remedy: 'write "shell: powershell", or remove it' });
  }
  return found;
}

function steps({ pointer, block: { setup: script, steps: list = [] } }: Entry): readonly Finding[] {
  if (script !== undefined || list.length > 0) return [];
  const reason = 'has neither steps nor setup: the image would be the base image';
  return [{ pointer, reason, remedy: 'say what is run on the machine' }];
}

function setup({ pointer: place, block, context }: Entry): readonly Finding[] {
  if (block.setup === undefined || context.scriptDir) return [];
  const pointer = `${place}/setup`;
  return [{ pointer, reason: 'is a script of script-dir, which is not named', remedy: 'name script-dir' }];
}
