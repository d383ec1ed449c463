import type { BuilderModule, Diagnostic, SettingsContext } from '@nodepool-builder/image-builder';
import { InstanceReaper } from './instance-reaper.ts';
import { OnInstanceBuilder } from './on-instance-builder.ts';
import { ON_INSTANCE_SETTINGS, type OnInstance, type OnInstanceBlock } from './on-instance-settings.ts';
import { parseFingerprint } from './ssh/host-key.ts';

/** Builder `on-instance`: builds images on running instances. */
export const ON_INSTANCE: BuilderModule<typeof ON_INSTANCE_SETTINGS, OnInstance> = {
  type: 'on-instance',
  description: 'on a running instance',
  settings: ON_INSTANCE_SETTINGS,
  check: ({ 'on-instance': block }, context) =>
    [
      ...provider(block, context),
      ...connection(block),
      ...shell(block),
      ...steps(block),
      ...setup(block, context),
    ].map((diagnostic) => ({ ...diagnostic, pointer: `/on-instance${diagnostic.pointer}` })),
  read: ({ 'on-instance': block }, context) => read(block, context),
  // Neither timeouts nor the way to log in change the image.
  content: (settings) => {
    const commands = settings.steps.map(({ run }) => run);
    const { provider: name, 'base-image': baseImage, shell: shellName, sysprep } = settings;
    return ['', undefined, [name, baseImage, shellName, commands, sysprep]];
  },
  snapshotProvider: (settings) => settings.provider,
  providerImages: {
    keys: ['base-image', 'setup', 'username', 'private-key', 'min-ram', 'name-filter'],
    reason: ({ setup: script, 'min-ram': minRam }, module, { scriptDir }) => {
      if (module?.openInstances === undefined) {
        return `means nothing to a provider of type ${module?.type}: it runs no machines`;
      }
      if (Number.isNaN(Number(minRam ?? 0))) return 'has a min-ram beside it that is no number';
      if (textOf(script) === '') return 'has no setup beside it: the image would be the base image';
      return scriptDir === undefined ? 'has a setup of script-dir, which is not named' : undefined;
    },
    diskimage: (image, name) => ({ 'on-instance': blockOf(image, name) }),
  },
  create: (diskimage, settings, services) => new OnInstanceBuilder(diskimage, settings, services),
  start: (site) => InstanceReaper.start(site),
};

function provider(
  { provider: name }: OnInstanceBlock,
  { providers }: SettingsContext,
): readonly Diagnostic[] {
  const module = providers.get(name);
  if (module?.openInstances !== undefined) return [];
  const reason =
    module === undefined
      ? `"${name}" is not among providers`
      : `"${name}" is of type ${module.type}: it runs no machines`;
  const remedy = 'name one that runs instances, or none, for QEMU on this host';
  return [{ pointer: '/provider', reason, remedy }];
}

function connection({ connection: protocol, winrm }: OnInstanceBlock): readonly Diagnostic[] {
  if (protocol === 'winrm' && winrm === undefined) {
    const reason = 'lacks the key "winrm", which connection: winrm needs';
    return [{ pointer: '', reason, remedy: 'name the file with the password there: password-file' }];
  }
  if (winrm === undefined) return [];
  if (protocol === 'winrm') return certificate(winrm);
  const reason = `means nothing, as the connection is ${protocol}`;
  return [{ pointer: '/winrm', reason, remedy: 'write "connection: winrm", or remove it' }];
}

/** Checks how the certificate of the instance is verified. */
function certificate({
  fingerprint,
  'ca-file': caFile,
}: NonNullable<OnInstanceBlock['winrm']>): readonly Diagnostic[] {
  if (fingerprint !== undefined && parseFingerprint(fingerprint) === undefined) {
    const reason = 'is no SHA-256 fingerprint of a certificate';
    const remedy =
      'write 64 hexadecimal digits, with or without colons, or SHA256: and 43 characters of base64';
    return [{ pointer: '/winrm/fingerprint', reason, remedy }];
  }
  if (fingerprint !== undefined || caFile !== undefined) return [];
  const reason =
    'has neither "fingerprint" nor "ca-file": only a certificate that the console announces is trusted';
  const remedy =
    'add one of them, unless the base image prints the fingerprint of its certificate to the console';
  return [{ pointer: '/winrm', severity: 'warning', reason, remedy }];
}

/** WinRM reaches only Windows. */
function shellOf({
  shell: name,
  connection: protocol,
}: Pick<OnInstanceBlock, 'shell' | 'connection'>): OnInstance['shell'] {
  return name ?? (protocol === 'winrm' ? 'powershell' : 'posix');
}

function* shell(block: OnInstanceBlock): Iterable<Diagnostic> {
  if (shellOf(block) === 'powershell') return;
  if (block.connection === 'winrm') {
    const reason = 'is posix, which WinRM does not bring';
    yield { pointer: '/shell', reason, remedy: 'use powershell, or connection: ssh' };
  }
  if (block.sysprep) {
    const reason = 'needs Windows, but the shell is posix';
    yield { pointer: '/sysprep', reason, remedy: 'write "shell: powershell", or remove it' };
  }
}

function steps({ setup: script, steps: list = [] }: OnInstanceBlock): readonly Diagnostic[] {
  if (script !== undefined || list.length > 0) return [];
  const reason = 'has neither steps nor setup: the image would be the base image';
  return [{ pointer: '', reason, remedy: 'say what is run on the machine' }];
}

function setup({ setup: script }: OnInstanceBlock, { scriptDir }: SettingsContext): readonly Diagnostic[] {
  if (script === undefined || scriptDir !== undefined) return [];
  const reason = 'is a script of script-dir, which is not named';
  return [{ pointer: '/setup', reason, remedy: 'name script-dir' }];
}

const USERS: Readonly<Record<OnInstance['shell'], string>> = { posix: 'root', powershell: 'Administrator' };

/** Commands that run nodepool's set-up script, which may have arguments of its own. */
const SETUPS: Readonly<Record<OnInstance['shell'], (setup: string, name: string) => string>> = {
  posix: (script, name) => `./${script} '${name.replaceAll("'", `'\\''`)}'`,
  powershell: (script, name) => `.\\${script} '${name.replaceAll("'", "''")}'`,
};

function read(
  { setup: script, ...block }: OnInstanceBlock,
  { name, providers, absolute }: SettingsContext,
): OnInstance {
  const { 'base-image': baseImage, winrm } = block;
  const shellName = shellOf(block);
  const fingerprint = winrm?.fingerprint && parseFingerprint(winrm.fingerprint);
  return {
    ...block,
    'base-image': providers.get(block.provider)?.bootsFiles ? absolute(baseImage) : baseImage,
    username: block.username ?? USERS[shellName],
    shell: shellName,
    ...(winrm && fingerprint && { winrm: { ...winrm, fingerprint } }),
    steps: [
      ...(script === undefined ? [] : [{ name: script, run: SETUPS[shellName](script, name) }]),
      ...(block.steps ?? []).map((step) => (typeof step === 'string' ? { run: step } : step)),
    ],
  };
}

/** Block of an image in the place of `providers[].images`. */
function blockOf(image: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const text = (key: string): Readonly<Record<string, string>> =>
    image[key] == null ? {} : { [key]: textOf(image[key]) };
  return {
    provider: name,
    'base-image': textOf(image['base-image']),
    setup: textOf(image.setup),
    ...text('username'),
    ...text('private-key'),
    ...(image['min-ram'] != null && { 'min-ram': Number(image['min-ram']) }),
    ...text('name-filter'),
  };
}

/** Text that YAML may have taken for a number. */
function textOf(value: unknown): string {
  return value == null ? '' : `${value as string | number}`;
}
