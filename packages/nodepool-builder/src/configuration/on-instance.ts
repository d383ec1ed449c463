import type { ProviderModule } from '@nodepool-builder/image-builder';
import { type InstanceStep, type OnInstance, parseFingerprint } from '@nodepool-builder/on-instance';
import { LOCAL_PROVIDER, type OnInstanceSource, shellOf } from './on-instance-source.ts';

/** Where an image is made. */
export interface OnInstancePlace {
  /** `diskimages[].name`. */
  readonly name: string;
  /** Modules of the providers, by the provider's name. */
  readonly providers: ReadonlyMap<string, ProviderModule>;
  /** Makes a path absolute. */
  readonly absolute: (path: string) => string;
}

/** How an image is made on a running machine, from the block `on-instance`. */
export function toOnInstance(
  block: OnInstanceSource,
  { name, providers, absolute }: OnInstancePlace,
): OnInstance {
  const { provider = LOCAL_PROVIDER, 'base-image': baseImage, 'min-ram': minRam } = block;
  const { 'name-filter': nameFilter, 'private-key': privateKey, winrm } = block;
  const { 'keep-on-failure': keepOnFailure, setup, steps = [] } = block;
  const shell = shellOf(block);
  return {
    provider,
    baseImage: providers.get(provider)?.bootsFiles ? absolute(baseImage) : baseImage,
    ...(minRam !== undefined && { minRam }),
    ...(nameFilter !== undefined && { nameFilter }),
    username: block.username ?? USERS[shell],
    ...(privateKey !== undefined && { privateKeyFile: absolute(privateKey) }),
    connection: block.connection ?? 'ssh',
    ...(winrm !== undefined && { winrm: toWinrm(winrm, absolute) }),
    shell,
    steps: [
      ...(setup === undefined ? [] : [{ name: setup, run: SETUPS[shell](setup, name) }]),
      ...steps.map((step): InstanceStep => (typeof step === 'string' ? { run: step } : step)),
    ],
    sysprep: block.sysprep ?? false,
    bootTimeout: block['boot-timeout'] ?? 600,
    stopTimeout: block['stop-timeout'] ?? 300,
    ...(keepOnFailure !== undefined && { keepOnFailure }),
    afterRestart: block['after-restart'] ?? 'destroy',
  };
}

const USERS: Readonly<Record<OnInstance['shell'], string>> = { posix: 'root', powershell: 'Administrator' };

/** How nodepool's set-up script is run: it was always free to bring arguments of its own. */
const SETUPS: Readonly<Record<OnInstance['shell'], (setup: string, name: string) => string>> = {
  posix: (setup, name) => `./${setup} '${name.replaceAll("'", `'\\''`)}'`,
  powershell: (setup, name) => `.\\${setup} '${name.replaceAll("'", "''")}'`,
};

function toWinrm(
  source: NonNullable<OnInstanceSource['winrm']>,
  absolute: (path: string) => string,
): NonNullable<OnInstance['winrm']> {
  const { port = 5986, 'password-file': passwordFile, 'ca-file': caFile } = source;
  const fingerprint = source.fingerprint && parseFingerprint(source.fingerprint);
  return {
    port,
    passwordFile: absolute(passwordFile),
    ...(caFile !== undefined && { caFile: absolute(caFile) }),
    ...(fingerprint !== undefined && { fingerprint }),
  };
}
