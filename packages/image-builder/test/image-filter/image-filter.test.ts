import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { combineFilters, filterEntry, parseImageFilter } from '../../src/image-filter/image-filter.ts';

const NOW = Date.UTC(2026, 4, 8);

test('an image filter from KEY=VALUE equals one from YAML entries', () => {
  const texts = ['name=debian-*', 'name=ubuntu-*', 'tag=ci', 'image-name=debian', 'owner=self', 'owner=a1b2'];
  const others = ['architecture=x86_64', 'visibility=private', 'property:os=a=b', 'not-older-than=7d'];
  const filter = {
    name: ['debian-*', 'ubuntu-*'],
    tag: ['ci'],
    imageName: ['debian'],
    owner: ['self', 'a1b2'],
    architecture: ['x86_64'],
    visibility: ['private'],
    properties: new Map([['os', ['a=b']]]),
    createdAfter: new Date('2026-05-01T00:00:00Z'),
  };
  assert.deepEqual(parseImageFilter([...texts, ...others].map(filterEntry), NOW), filter);
  const yaml = [
    { name: 'name', values: ['debian-*', 'ubuntu-*'] },
    { name: 'tag', values: ['ci'] },
    { name: 'image-name', values: ['debian'] },
    { name: 'owner', values: ['self', 'a1b2'] },
    { name: 'architecture', values: ['x86_64'] },
    { name: 'visibility', values: ['private'] },
    { name: 'property:os', values: ['a=b'] },
    { name: 'created-after', values: ['2026-05-01T00:00:00Z'] },
  ];
  assert.deepEqual(parseImageFilter(yaml, NOW), filter);
});

test('an image filter without entries is empty, and the later of two times counts', () => {
  assert.deepEqual(parseImageFilter([]), {});
  const entries = ['created-after=2026-05-01', 'not-older-than=24h'].map(filterEntry);
  assert.deepEqual(parseImageFilter(entries, NOW), { createdAfter: new Date('2026-05-07T00:00:00Z') });
});

test('an image filter’s property may have any name', () => {
  const { properties } = parseImageFilter(['property:__proto__=x', 'property:a:b=y'].map(filterEntry));
  assert.deepEqual(properties, new Map(Object.entries({ 'a:b': ['y'] })).set('__proto__', ['x']));
});

test('an image must match all lists of filter entries, and one value of each key in a list', () => {
  const list = ['name=debian-*', 'name=ubuntu-*', 'owner=self', 'owner=a1b2', 'tag=ci'].map(filterEntry);
  const own = ['name=debian-12', 'owner=a1b2', 'property:os=debian'].map(filterEntry);
  const combined = [
    { name: 'name', values: ['debian-12'] },
    { name: 'owner', values: ['a1b2'] },
    { name: 'tag', values: ['ci'] },
    { name: 'property:os', values: ['debian'] },
  ];
  assert.deepEqual(combineFilters(list, own), combined);
  assert.deepEqual(new Set(combineFilters(own, list)), new Set(combined));
  assert.throws(
    () => combineFilters(list, [filterEntry('owner=them')]),
    withCode(
      'invalid-filter',
      /"owner" must be "self" or "a1b2", and also "them", which no image is; remove/,
    ),
  );
});

for (const [text, reason] of [
  ['name', /"name" is not KEY=VALUE; write/],
  ['=x', /is not KEY=VALUE/],
  [
    'status=active',
    /unknown key "status"; use one of name, image-name, tag, .*property:NAME, .*not-older-than/,
  ],
  ['toString=x', /unknown key "toString"/],
  ['property:=x', /unknown key "property:"/],
  ['created-after=yesterday', /"created-after" cannot be "yesterday"; write one time such as 2026/],
  ['created-after=7', /cannot be "7"; write one time such as 2026/],
  ['not-older-than=7', /cannot be "7"; write one duration such as 12h/],
] as const) {
  test(`the image filter "${text}" is rejected`, () => {
    assert.throws(() => parseImageFilter([filterEntry(text)]), withCode('invalid-filter', reason));
  });
}

test('an image filter is rejected if a key has no values, or a time has two', () => {
  const empty = [{ name: 'tag', values: [] }];
  assert.throws(() => parseImageFilter(empty), withCode('invalid-filter', /"tag" has no values/));
  const twice = ['not-older-than=1d', 'not-older-than=2d'].map(filterEntry);
  assert.throws(() => parseImageFilter(twice), withCode('invalid-filter', /cannot be "1d", "2d"; write one/));
});
