import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { HttpSettingsError, type Variables } from './proxy-choice.ts';

/** Variables of requests and curl. The first one that is set counts. */
const BUNDLES = ['REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'] as const;

/** File names that `openssl rehash` gives to the certificates in a directory. */
const HASHED = /^[\da-f]{8}\.\d+$/;

/**
 * Returns the PEM certificates of the authorities in the file or directory that `REQUESTS_CA_BUNDLE` or
 * `CURL_CA_BUNDLE` names, and in the file that `NODE_EXTRA_CA_CERTS` names.
 *
 * @returns undefined without such a variable, so that Node's authorities count
 * @throws HttpSettingsError
 */
export function bundledAuthorities(environment: Variables): readonly string[] | undefined {
  const name = BUNDLES.find((each) => environment[each]);
  if (name === undefined) return undefined;
  try {
    return [...readBundle(environment[name] ?? ''), ...getCACertificates('extra')];
  } catch (cause) {
    const reason = `${name} cannot be used: ${(cause as Error).message}`;
    throw new HttpSettingsError(`${reason}; set it to a PEM file or a directory, or unset it`, { cause });
  }
}

function readBundle(path: string): readonly string[] {
  const isDirectory = statSync(path).isDirectory();
  const files = isDirectory ? readdirSync(path).filter((name) => HASHED.test(name)) : [''];
  const certificates = files.map((name) => readFileSync(join(path, name), 'utf8'));
  if (certificates.some((text) => text.includes('-----BEGIN '))) return certificates;
  throw new Error(
    isDirectory
      ? `${path} contains no certificates with names of openssl rehash`
      : `${path} contains no certificate`,
  );
}
