import { deepEqual, equal } from 'node:assert/strict';
import { describe, it } from 'node:test';
import { announcedCertificates, parseFingerprint } from '../../src/ssh/host-key.ts';

/** SHA-256 of empty input, from `openssl dgst -sha256` and its base64. */
const HEXADECIMAL = 'E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855';
const FINGERPRINT = 'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU';

function block(text: string): string {
  return `-----BEGIN WINRM CERTIFICATE FINGERPRINT-----\r\n${text}\r\n-----END WINRM CERTIFICATE FINGERPRINT-----\r\n`;
}

describe('a certificate fingerprint', () => {
  it('a certificate fingerprint may be hexadecimal, with or without colons, or in OpenSSH’s notation', () => {
    const withColons = HEXADECIMAL.replaceAll(/..(?=.)/g, '$&:');
    for (const text of [HEXADECIMAL, HEXADECIMAL.toLowerCase(), withColons, FINGERPRINT]) {
      equal(parseFingerprint(text), FINGERPRINT);
    }
  });

  it('a certificate fingerprint must have the length of SHA-256', () => {
    for (const text of [
      '',
      HEXADECIMAL.slice(2),
      `${HEXADECIMAL}00`,
      FINGERPRINT.slice(0, -1),
      'MD5:00:11',
    ]) {
      equal(parseFingerprint(text), undefined);
    }
  });

  it('a certificate fingerprint is read from the console log’s last complete block', () => {
    const older = '00'.repeat(32);
    deepEqual(announcedCertificates(block(older) + block(HEXADECIMAL)), new Set([FINGERPRINT]));
    deepEqual(announcedCertificates(`${FINGERPRINT}${block('nonsense')}`), new Set());
    deepEqual(announcedCertificates(block(HEXADECIMAL).slice(0, -20)), new Set());
  });
});
