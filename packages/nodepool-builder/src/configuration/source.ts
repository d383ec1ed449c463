import type { ImageFormat } from '@nodepool-builder/image-builder';

/** `nodepool.yaml` as it stands in the file, once the schema has found no error in it. */
export interface ConfigurationSource {
  readonly 'images-dir': string;
  readonly 'elements-dir'?: string | null;
  readonly 'script-dir'?: string | null;
  readonly 'build-log-dir'?: string;
  readonly 'build-log-retention'?: number;
  readonly 'virtual-size-limit'?: number;
  readonly 'build-log-size'?: number;
  readonly 'build-environment'?: readonly string[] | null;
  readonly 'gearman-servers'?: readonly GearmanServerSource[] | null;
  readonly diskimages?: readonly DiskImageSource[] | null;
  readonly providers?: readonly ProviderSource[] | null;
  readonly cron?: { readonly 'image-update'?: string } | null;
  readonly manager?: {
    readonly store?: string;
    readonly 'retry-delay'?: number;
    readonly 'longest-retry-delay'?: number;
    readonly 'leak-interval'?: number;
    readonly 'absence-limit'?: number;
  };
  /** The sections that builders have of their own. */
  readonly [section: string]: unknown;
}

/** An entry of `gearman-servers` as it stands in the file. */
export interface GearmanServerSource {
  readonly host: string;
  readonly port?: number;
  readonly 'ssl-ca'?: string;
  readonly 'ssl-cert'?: string;
  readonly 'ssl-key'?: string;
  readonly 'ssl-server-name'?: string;
  readonly ssl_ca?: string;
  readonly ssl_cert?: string;
  readonly ssl_key?: string;
}

/** A disk image as it stands in the file, with the keys of its builder. */
export interface DiskImageSource {
  readonly name: string;
  readonly parent?: string | null;
  readonly abstract?: boolean;
  readonly builder?: string;
  readonly release?: unknown;
  readonly formats?: readonly ImageFormat[] | null;
  readonly pause?: boolean;
  readonly 'env-vars'?: unknown;
  readonly 'build-timeout'?: number;
  readonly validate?: ValidationSource;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly 'rebuild-age'?: number;
  readonly 'rebuild-cron'?: string;
  readonly keep?: number;
  readonly [key: string]: unknown;
}

/** `validate` of a disk image as it stands in the file. */
export interface ValidationSource {
  readonly hook?: readonly string[] | string;
  readonly boot?: {
    readonly expect: string;
    readonly timeout?: number;
    readonly memory?: number;
    readonly accelerator?: 'kvm' | 'tcg';
  };
}

/** Text that YAML may take for a number. */
export type Scalar = string | number | null;

/** An entry of `providers` as it stands in the file, with the keys of its module and those that only nodepool reads. */
export interface ProviderSource {
  readonly name: string;
  readonly type?: string;
  readonly 'image-type'?: ImageFormat | null;
  readonly 'template-hostname'?: string;
  readonly 'bandwidth-limit'?: number;
  readonly 'image-upload-timeout'?: number;
  readonly pause?: boolean;
  readonly 'post-upload-hook'?: string;
  readonly images?: readonly ProviderImageSource[] | null;
  readonly [key: string]: unknown;
}

/** An entry of `providers[].images` as it stands in the file. */
export interface ProviderImageSource {
  readonly name: string;
  readonly diskimage?: string | null;
  readonly pause?: boolean;
  readonly meta?: Readonly<Record<string, unknown>> | null;
  readonly 'image-filters'?: readonly ImageFilterSource[] | null;
  readonly [key: string]: unknown;
}

/** An entry of `providers[].images[].image-filters` as it stands in the file. */
export interface ImageFilterSource {
  readonly name: string;
  readonly values: readonly (string | number | boolean)[];
}

/** Of several entries with one name the last one counts, as in nodepool. */
export function lastOfEachName<T extends { readonly name: string }>(entries: readonly T[]): readonly T[] {
  return [...new Map(entries.map((entry) => [entry.name, entry])).values()];
}
