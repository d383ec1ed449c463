import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { proxyFor } from '../../src/http/proxy-choice.ts';

const PROXY = 'http://proxy:3128';

/** A URL, and environment variables. */
type Case = readonly [url: string, environment: Readonly<Record<string, string>>];

/** Cases with a proxy for both schemes and this `no_proxy`. */
const NO_PROXY: readonly (readonly [url: string, ...values: readonly string[]])[] = [
  [
    'http://127.0.0.1:5000/v3',
    '127.0.0.0/8',
    '127.0.0.1',
    '127.0.0.1/32',
    '10.0.0.0/8',
    '127.0.0.1/33',
    '127.0.0.0/x',
  ],
  [
    'http://10.20.30.40/',
    '10.0.0.0/8',
    '10.20.30.40',
    '10.20.30.4',
    '0.40',
    '.40',
    '10.20.0.0/15',
    '10.22.0.0/16',
    '10.0.0.0/0',
    '10.0.0.0/',
    '10.0.0.0/-1',
  ],
  [
    'https://glance.example.com/v2',
    'example.com',
    '.example.com',
    'GLANCE.Example.COM',
    'lance.example.com',
    'other',
  ],
  [
    'https://glance.example.com:9292/',
    'glance.example.com:9292',
    'example.com:9292',
    'example.com:9191',
    '*',
  ],
  ['https://glance.example.com/', ' a , example.com ,b', ',', '', 'example.com.', 'example', 'com', '.com'],
  ['https://glance/', 'glance', 'lance', 'keystone,glance', 'localhost'],
  ['http://[::1]:9292/', '::1', '::2', '127.0.0.0/8'],
  ['http://GLANCE.example.com/', 'glance.example.com'],
];

const VARIABLES: readonly Case[] = [
  ['https://s3/', { https_proxy: PROXY }],
  ['http://s3/', { https_proxy: PROXY }],
  ['http://s3/', { http_proxy: PROXY }],
  ['https://s3/', { HTTPS_PROXY: PROXY }],
  ['http://s3/', { HTTP_PROXY: PROXY }],
  ['https://s3/', { ALL_PROXY: PROXY }],
  ['http://s3/', { all_proxy: PROXY }],
  ['https://s3/', { all_proxy: 'http://other:1', https_proxy: PROXY }],
  ['https://s3/', { https_proxy: '', HTTPS_PROXY: PROXY }],
  ['https://s3/', { https_proxy: '', HTTPS_PROXY: PROXY, ALL_PROXY: 'http://other:1' }],
  ['https://s3/', { https_proxy: PROXY, HTTPS_PROXY: 'http://other:1' }],
  ['https://s3/', { https_proxy: PROXY, no_proxy: '', NO_PROXY: 's3' }],
  ['https://s3/', { https_proxy: PROXY, no_proxy: 'x', NO_PROXY: 's3' }],
  ['https://s3/', {}],
];

function ours([url, environment]: Case): string | undefined {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'https:';
  return proxyFor({ isTls, host, port: Number(port || (isTls ? 443 : 80)) }, environment)?.origin;
}

const PYTHON = `
import json, os, sys
from requests.utils import get_environ_proxies, select_proxy
chosen = []
for url, environment in json.load(sys.stdin):
    os.environ.clear()
    os.environ.update(environment)
    chosen.append(select_proxy(url, get_environ_proxies(url)))
json.dump(chosen, sys.stdout)
`;

function described(one: Case, proxy: string | null | undefined): string {
  return `${JSON.stringify(one)}: ${proxy ?? 'direct'}`;
}

test('the proxy for a URL is the same as in python3-requests', () => {
  const excluded = NO_PROXY.flatMap(([url, ...values]) =>
    values.map((value): Case => [url, { http_proxy: PROXY, https_proxy: PROXY, no_proxy: value }]),
  );
  const cases = [...VARIABLES, ...excluded];
  const input = JSON.stringify(cases);
  const output = execFileSync('/usr/bin/python3', ['-c', PYTHON], { input, encoding: 'utf8' });
  const theirs = JSON.parse(output) as (string | null)[];
  assert.deepEqual(
    cases.map((one) => described(one, ours(one))),
    cases.map((one, index) => described(one, theirs[index])),
  );
});

test('the variable no_proxy may also contain brackets, IPv6 networks, ports and a star', () => {
  const excluded: readonly (readonly [url: string, noProxy: string])[] = [
    ['http://[::1]:9292/', '[::1]'],
    ['http://[::1]:9292/', '[::1]:9292'],
    ['http://[::1]/', '0:0:0:0:0:0:0:1'],
    ['http://[fd00::5]/', 'fd00::/8'],
    ['http://10.0.0.1:9292/', '10.0.0.1:9292'],
    ['https://glance/', 'glance:443'],
    ['https://glance.example.com/', 'x,*'],
    ['https://glance.example.com/', '*.example.com'],
  ];
  for (const [url, value] of excluded) {
    assert.equal(ours([url, { all_proxy: PROXY, no_proxy: value }]), undefined, `${url} ${value}`);
  }
  for (const [url, value] of [
    ['http://[::1]:9292/', '[::1]:9191'],
    ['http://10.0.0.1:9292/', '10.0.0.1:9191'],
    ['http://[::1]/', '::1/129'],
    ['https://notexample.com/', '*.example.com'],
  ] as const) {
    assert.equal(ours([url, { all_proxy: PROXY, no_proxy: value }]), PROXY, `${url} ${value}`);
  }
});

test('a proxy variable may have no scheme, and a percent sign in its password', () => {
  for (const [value, url] of [
    ['proxy:3128', 'http://proxy:3128/'],
    ['//proxy:3128', 'http://proxy:3128/'],
    ['user:secret@proxy:3128', 'http://user:secret@proxy:3128/'],
    ['https://proxy', 'https://proxy/'],
    ['http://user:100%@proxy:1', 'http://user:100%25@proxy:1/'],
    ['http://user:a%40b@proxy:1', 'http://user:a%40b@proxy:1/'],
  ] as const) {
    const found = proxyFor({ isTls: true, host: 's3', port: 443 }, { https_proxy: value });
    assert.equal(found?.href, url);
  }
});

test('a proxy that cannot be used causes an error that names the variable, and not its value', () => {
  const cases: readonly (readonly [name: string, value: string, message: RegExp])[] = [
    [
      'https_proxy',
      'socks5://user:secret@proxy:1080',
      /^https_proxy names a SOCKS proxy, which is not supported; set it/,
    ],
    ['ALL_PROXY', 'SOCKS5h://proxy:1080', /^all_proxy names a SOCKS proxy/],
    [
      'https_proxy',
      'http://',
      /^https_proxy names no proxy, because its value is not a proxy URL; set it to http:/,
    ],
    ['https_proxy', 'ftp://user:secret@proxy', /^https_proxy names no proxy/],
    ['https_proxy', 'http://user:sec#ret@proxy', /^https_proxy names no proxy/],
  ];
  for (const [name, value, message] of cases) {
    assert.throws(
      () => proxyFor({ isTls: true, host: 's3', port: 443 }, { [name]: value }),
      (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /sec/);
        return error.name === 'HttpSettingsError';
      },
    );
  }
});
