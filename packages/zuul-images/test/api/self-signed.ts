import { execFileSync } from 'node:child_process';

const SELF_SIGNED = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -keyout - -out -
  -subj /CN=zuul -addext subjectAltName=IP:127.0.0.1`;

/** A certificate for 127.0.0.1, signed by itself, and its key, both as PEM. */
export function selfSigned(): { readonly cert: string; readonly key: string } {
  const printed = execFileSync('openssl', SELF_SIGNED.split(/\s+/), {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const start = printed.indexOf('-----BEGIN CERTIFICATE-----');
  return { cert: printed.slice(start), key: printed.slice(0, start) };
}
