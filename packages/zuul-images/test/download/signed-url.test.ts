import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isExpired } from '../../src/download/stored-object.ts';

const END = Date.parse('2026-11-21T12:00:00Z');

/** URLs that all expire at {@link END}. */
const QUERIES = [
  'X-Amz-Date=20261121T110000Z&X-Amz-Expires=3600',
  'X-Goog-Date=20261121T110000Z&X-Goog-Expires=3600',
  `AWSAccessKeyId=a&Signature=b&Expires=${END / 1000}`,
  `temp_url_sig=a&temp_url_expires=${END / 1000}`,
  'temp_url_sig=a&temp_url_expires=2026-11-21T12:00:00Z',
  'sv=2024&se=2026-11-21T12%3A00%3A00Z&sig=a',
];

test('a signed URL’s query says when it expires', () => {
  for (const query of QUERIES) {
    const url = new URL(`https://store.example.com/image?${query}`);
    assert.deepEqual([isExpired(url, END - 1000), isExpired(url, END)], [false, true], query);
  }
});

test('a URL without a signature never expires', () => {
  for (const query of ['', 'Expires=1', 'se=', 'X-Amz-Date=20261121T110000Z']) {
    assert.equal(isExpired(new URL(`https://store.example.com/image?${query}`), END), false, query);
  }
});
