import {
  type BuilderModule,
  type Diagnostic,
  ImageError,
  type ProviderModule,
  parseImageFilter,
  type SettingsContext,
} from '@nodepool-builder/image-builder';
import { InstanceReaper } from './instance-reaper.ts';
import { OnInstanceBuilder } from './on-instance-builder.ts';
import {
  ON_INSTANCE_SETTINGS,
  type OnInstance,
  type OnInstanceBlock,
  PROVIDER_IMAGE_KEYS,
} from './on-instance-settings.ts';
import { shellLiteral } from './posix-scripts.ts';
import { powershellLiteral } from './powershell-scripts.ts';
import { parseFingerprint } from './ssh/host-key.ts';

/** Builder `on-instance`: builds images on running instances. */
export const ON_INSTANCE_MODULE: BuilderModule<typeof ON_INSTANCE_SETTINGS, OnInstance> = {
  type: 'on-instance',
  settings: ON_INSTANCE_SETTINGS,
  check: ({ 'on-instance': block }, context) =>
    [...diagnostics(block, context)].map((diagnostic) => ({
      ...diagnostic,
      pointer: `/on-instance${diagnostic.pointer}`,
    })),
  read: ({ 'on-instance': block }, context) => read(block, context),
  // Neither timeouts nor the login change the image.
  describe: ({ provider, 'base-image': baseImage, shell, steps, sysprep }) => ({
    content: [provider, baseImage, shell, steps, sysprep],
    snapshotProvider: provider,
  }),
  entries: {
    providerImages: {
      properties: PROVIDER_IMAGE_KEYS,
      reason: ({ setup: script, 'min-ram': minRam }, module, { scriptDir }) => {
        if (module?.instances === undefined) {
          return `has no effect: a provider of type ${module?.type} does not run instances`;
        }
        if (Number.isNaN(Number(minRam ?? 0))) return 'has a min-ram next to it that is not a number';
        if (textOf(script) === '') return 'has no setup next to it: the image would be the base image';
        return scriptDir === undefined ? 'has a setup of script-dir, which is not set' : undefined;
      },
      diskimage: (image, name) => ({ 'on-instance': blockOf(image, name) }),
    },
  },
  create: (diskimage, settings, services) => new OnInstanceBuilder(diskimage, settings, services),
  start: (site) => InstanceReaper.start(site),
};

function* diagnostics(
  block: OnInstanceBlock,
  { providers, cloudImages, scriptDir }: SettingsContext,
): Iterable<Diagnostic> {
  const { provider, winrm, setup, steps = [] } = block;
  const module = providers.get(provider);
  if (
    winrm !== undefined &&
    winrm['password-file'] === undefined &&
    module?.instances?.reportsPasswords !== true
  ) {
    const reason = 'lacks the key "password-file"';
    yield { pointer: '/winrm', reason, remedy: 'add "password-file: …"' };
  }
  if (module?.instances === undefined) {
    const reason =
      module === undefined
        ? `"${provider}" is not among providers`
        : `"${provider}" is of type ${module.type}, which does not run instances`;
    const remedy = 'name a provider that runs instances, or none, for QEMU on this host';
    yield { pointer: '/provider', reason, remedy };
  }
  yield* baseImageDiagnostics(block, module, cloudImages?.(provider) ?? []);
  if (winrm !== undefined) yield* certificate(winrm);
  const isPosix = shellOf(block) === 'posix';
  if (isPosix && winrm !== undefined) {
    const reason = 'is posix, which is not available over WinRM';
    yield { pointer: '/shell', reason, remedy: 'use powershell, or remove winrm' };
  }
  if (isPosix && block.sysprep) {
    const reason = 'needs Windows, but the shell is posix';
    yield { pointer: '/sysprep', reason, remedy: 'write "shell: powershell", or remove it' };
  }
  if (setup === undefined && steps.length === 0) {
    const reason = 'has neither steps nor setup: the image would be the base image';
    yield { pointer: '', reason, remedy: 'add the commands to run on the machine' };
  }
  if (setup !== undefined && scriptDir === undefined) {
    const reason = 'is a script of script-dir, which is not set';
    yield { pointer: '/setup', reason, remedy: 'set script-dir' };
  }
}

/** Checks a base image that is selected when the build starts. */
function* baseImageDiagnostics(
  { provider, 'base-image': baseImage }: OnInstanceBlock,
  module: ProviderModule | undefined,
  cloudImages: readonly string[],
): Iterable<Diagnostic> {
  if (typeof baseImage === 'string') return;
  const pointer = '/base-image';
  const { 'image-filters': filters, 'cloud-image': name } = baseImage;
  const remedy = 'write the image itself, or one of image-filters and cloud-image';
  if ((name === undefined) === (filters == null || filters.length === 0)) {
    yield { pointer, reason: 'needs either image-filters or cloud-image', remedy };
  } else if (module !== undefined && module.images === undefined) {
    const reason = `cannot be selected: provider "${provider}" is of type ${module.type} and lists no images`;
    yield { pointer, reason, remedy: 'write the image itself' };
  } else if (name !== undefined && !cloudImages.includes(name)) {
    const reason = `"${name}" is not among cloud-images of provider "${provider}"`;
    yield { pointer: `${pointer}/cloud-image`, reason, remedy: 'add it there, or at the top level' };
  }
  try {
    const entries = (filters ?? []).map((filter) => ({ ...filter, values: filter.values.map(String) }));
    parseImageFilter(entries);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    yield { pointer: `${pointer}/image-filters`, reason: error.message, remedy: 'correct it' };
  }
}

/** Checks how the certificate of the instance is verified. */
function* certificate({
  fingerprint,
  'ca-file': caFile,
}: NonNullable<OnInstanceBlock['winrm']>): Iterable<Diagnostic> {
  if (fingerprint !== undefined && parseFingerprint(fingerprint) === undefined) {
    const reason = 'is not a SHA-256 fingerprint of a certificate';
    const remedy =
      'write 64 hexadecimal digits, with or without colons, or SHA256: and 43 characters of base64';
    yield { pointer: '/winrm/fingerprint', reason, remedy };
  }
  if (fingerprint === undefined && caFile === undefined) {
    const reason =
      'has neither "fingerprint" nor "ca-file", so only a certificate that the console announces is trusted';
    const remedy =
      'add one of them, unless the base image prints the fingerprint of its certificate to the console';
    yield { pointer: '/winrm', severity: 'warning', reason, remedy };
  }
}

/** Returns the shell. WinRM reaches only Windows. */
function shellOf({ shell, winrm }: Pick<OnInstanceBlock, 'shell' | 'winrm'>): OnInstance['shell'] {
  return shell ?? (winrm === undefined ? 'posix' : 'powershell');
}

const USERS: Readonly<Record<OnInstance['shell'], string>> = { posix: 'root', powershell: 'Administrator' };

/** Commands that run nodepool's set-up script, which may have its own arguments. */
const SETUPS: Readonly<Record<OnInstance['shell'], (setup: string, name: string) => string>> = {
  posix: (script, name) => `./${script} ${shellLiteral(name)}`,
  powershell: (script, name) => `.\\${script} ${powershellLiteral(name)}`,
};

function read(
  { setup: script, ...block }: OnInstanceBlock,
  { name, providers, absolute }: SettingsContext,
): OnInstance {
  const { 'base-image': baseImage, winrm } = block;
  const shell = shellOf(block);
  const fingerprint = winrm?.fingerprint && parseFingerprint(winrm.fingerprint);
  return {
    ...block,
    'base-image':
      typeof baseImage === 'string' && providers.get(block.provider)?.instances?.bootsFiles
        ? absolute(baseImage)
        : baseImage,
    username: block.username ?? USERS[shell],
    shell,
    ...(winrm && fingerprint && { winrm: { ...winrm, fingerprint } }),
    steps: [...(script === undefined ? [] : [SETUPS[shell](script, name)]), ...(block.steps ?? [])],
  };
}

/** Returns the `on-instance` block of an image in `providers[].images`. */
function blockOf(image: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const keys = Object.keys(PROVIDER_IMAGE_KEYS).filter((key) => image[key] != null);
  const values = keys.map(
    (key) => [key, key === 'min-ram' ? Number(image[key]) : textOf(image[key])] as const,
  );
  return { provider: name, ...Object.fromEntries(values) };
}

/** Returns a scalar as text, because YAML may have parsed it as a number. */
function textOf(value: unknown): string {
  return value == null ? '' : `${value as string | number}`;
}
