import type { ImageFormat } from '@nodepool-builder/image-builder';

/** `nodepool.yaml` as it stands in the file, once the schema has found no error in it. */
export interface ConfigurationSource {
  readonly 'images-dir': string;
  readonly 'elements-dir'?: string;
  readonly 'script-dir'?: string;
  readonly 'build-log-dir'?: string;
  readonly 'gearman-servers'?: readonly { readonly host: string; readonly port?: number }[] | null;
  readonly diskimages?: readonly DiskImageSource[] | null;
  readonly providers?: readonly ProviderSource[] | null;
}

/** An entry of `diskimages` as it stands in the file. */
export interface DiskImageSource {
  readonly name: string;
  readonly builder?: string;
  readonly elements?: readonly string[] | string | null;
  readonly release?: unknown;
  readonly 'env-vars'?: unknown;
  readonly 'build-timeout'?: number;
  readonly 'dib-cmd'?: string;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** An entry of `providers` as it stands in the file. */
export interface ProviderSource {
  readonly name: string;
  readonly type?: 'openstack' | 'directory';
  readonly 'image-type'?: ImageFormat;
  readonly directory?: string;
  readonly images?: readonly ProviderImageSource[] | null;
}

/** An entry of `providers[].images` as it stands in the file. */
export interface ProviderImageSource {
  readonly name: string;
  readonly diskimage?: string;
  readonly meta?: Readonly<Record<string, unknown>> | null;
}
