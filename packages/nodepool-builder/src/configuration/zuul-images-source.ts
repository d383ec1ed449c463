import type { ImageFormat } from '@nodepool-builder/image-builder';
import { FORMAT_ALIASES } from '@nodepool-builder/zuul-images';
import { isMapping } from './scalar.ts';
import type { DiskImageSource } from './source.ts';
import { escapePointer } from './yaml-document.ts';

/** `zuul-images` as it stands in the file. */
export type ZuulImagesSource =
  | readonly ZuulImageSource[]
  | Readonly<Record<string, Omit<ZuulImageSource, 'name'>>>;

/** An entry of `zuul-images`, with the keys that it shares with `diskimages`. */
export interface ZuulImageSource
  extends Pick<DiskImageSource, 'name' | 'formats' | 'pause' | 'build-timeout' | 'validate' | 'keep'> {
  readonly 'api-url': string;
  readonly tenant?: string;
  readonly project: string;
  readonly pipelines: readonly string[];
  readonly job: string;
  readonly branch?: string;
  readonly 'image-name'?: string;
  readonly artifacts: readonly { readonly format: string; readonly type: string }[];
  readonly auth?: ZuulAuthSource;
  readonly 'ca-file'?: string;
  readonly 'poll-interval'?: number;
  readonly mqtt?: {
    readonly url: string;
    readonly topic: string;
    readonly username?: string;
    readonly 'password-file'?: string;
    readonly 'ca-file'?: string;
  };
  readonly 's3-endpoint'?: string;
  readonly 'allowed-hosts'?: readonly string[];
  readonly 'require-sha256'?: boolean;
  readonly 'rebuild-age'?: unknown;
  readonly 'rebuild-cron'?: unknown;
}

/** `auth` of an entry of `zuul-images`: one of them. */
export interface ZuulAuthSource {
  readonly 'token-file'?: string;
  readonly 'token-command'?: readonly string[];
  readonly 'shared-secret'?: {
    readonly issuer: string;
    readonly audience: string;
    readonly subject: string;
    readonly 'secret-file': string;
  };
  readonly 'client-credentials'?: {
    readonly issuer: string;
    readonly 'client-id': string;
    readonly 'secret-file': string;
    readonly scope?: string;
  };
}

/** An entry of `zuul-images`, and where it stands. */
export interface ZuulImageEntry {
  readonly pointer: string;
  /** Where its name stands: a key of the list's entry, or of the mapping. */
  readonly namePointer: string;
  readonly entry: ZuulImageSource;
}

/** The entries of `zuul-images`, whichever way they are written. */
export function zuulImageEntries(source: ZuulImagesSource | null | undefined): readonly ZuulImageEntry[] {
  if (isMapping(source)) {
    return Object.entries(source).map(([name, rest]) => {
      const pointer = `/zuul-images/${escapePointer(name)}`;
      return { pointer, namePointer: pointer, entry: { ...rest, name } };
    });
  }
  return (source ?? []).map((entry, index) => {
    const pointer = `/zuul-images/${index}`;
    return { pointer, namePointer: `${pointer}/name`, entry };
  });
}

/** What an artifact's format is called here. */
export function artifactFormat(format: string): ImageFormat {
  return FORMAT_ALIASES[format] ?? (format as ImageFormat);
}
