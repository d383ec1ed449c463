import type { OnInstance } from '@nodepool-builder/on-instance';

/** `on-instance` of a disk image as it stands in the file. */
export interface OnInstanceSource {
  readonly provider?: string;
  readonly 'base-image': string;
  readonly 'min-ram'?: number;
  readonly 'name-filter'?: string;
  readonly username?: string;
  readonly 'private-key'?: string;
  readonly connection?: OnInstance['connection'];
  readonly winrm?: {
    readonly port?: number;
    readonly 'password-file': string;
    readonly 'ca-file'?: string;
    readonly fingerprint?: string;
  };
  readonly shell?: OnInstance['shell'];
  readonly setup?: string;
  readonly steps?: readonly (string | { readonly name?: string; readonly run: string })[];
  readonly sysprep?: boolean;
  readonly 'boot-timeout'?: number;
  readonly 'stop-timeout'?: number;
  readonly 'keep-on-failure'?: number;
  readonly 'after-restart'?: OnInstance['afterRestart'];
}

/** The builder of disk images with the block `on-instance`. */
export const INSTANCE_BUILDER = 'on-instance';

/** The provider of instances that needs no entry: QEMU on this host. */
export const LOCAL_PROVIDER = 'qemu';

/** What reads the steps if the block does not say: WinRM is Windows' own. */
export function shellOf({ shell, connection }: OnInstanceSource): OnInstance['shell'] {
  return shell ?? (connection === 'winrm' ? 'powershell' : 'posix');
}
