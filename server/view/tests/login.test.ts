import assert from "node:assert/strict";
import { test } from "node:test";
import { codeIn, placesOf, proofOf, readChallenge, requestTo } from "../src/login";

const ISSUER = "https://login.example/team";
const FORM = { client_id: "https://kg.example/client.json", redirect_uri: "https://kg.example/", resource: "r" };
const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: "https://login.example/authorize?tenant=team",
  token_endpoint: "https://tokens.example/token",
  code_challenge_methods_supported: ["plain", "S256"],
};

test("a verifier is proved as RFC 7636 shows", async () => {
  const proof = await proofOf("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
  assert.equal(proof, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
});

test("a refusal says what is wanted, and metadata is where MCP has it", () => {
  assert.deepEqual(readChallenge('Bearer scope="read memory", resource_metadata="https://kg.example/x"'), {
    scope: "read memory",
    resource_metadata: "https://kg.example/x",
  });
  assert.deepEqual(placesOf(ISSUER), [
    "https://login.example/.well-known/oauth-authorization-server/team",
    "https://login.example/.well-known/openid-configuration/team",
    "https://login.example/team/.well-known/openid-configuration",
  ]);
  assert.deepEqual(placesOf("https://login.example/").slice(0, 2), [
    "https://login.example/.well-known/oauth-authorization-server",
    "https://login.example/.well-known/openid-configuration",
  ]);
});

test("each login asks for the resource with a new state and proof, and keeps the verifier to itself", async () => {
  const logins = [await requestTo(METADATA, ISSUER, FORM, "read"), await requestTo(METADATA, ISSUER, FORM, "read")];
  assert.equal(new Set(logins.flatMap(([, asked]) => [asked.state, asked.verifier])).size, 4);
  const [address, asked] = logins[0] ?? assert.fail();
  const { state = "", verifier = "" } = asked;
  assert.ok(verifier.length >= 43 && !address.includes(verifier));
  assert.deepEqual(Object.fromEntries(new URL(address).searchParams), {
    ...{ tenant: "team", ...FORM, scope: "read", state, response_type: "code" },
    ...{ code_challenge: await proofOf(verifier), code_challenge_method: "S256" },
  });
});

test("metadata of another issuer, without S256 or with an endpoint that is not encrypted leads nowhere", async () => {
  for (const wrong of [
    { issuer: `${ISSUER}/` },
    { code_challenge_methods_supported: ["plain"] },
    { authorization_endpoint: "javascript:alert(1)//" },
    { token_endpoint: "http://tokens.example/token" },
    { token_endpoint: undefined },
  ])
    await assert.rejects(requestTo({ ...METADATA, ...wrong }, ISSUER, FORM, "read"), /does not suffice/);
});

test("a code counts in the answer to what was asked alone", async () => {
  const [, asked] = await requestTo(METADATA, ISSUER, FORM, "read");
  const [, strict] = await requestTo(
    { ...METADATA, authorization_response_iss_parameter_supported: true },
    ...([ISSUER, FORM, "read"] as const),
  );
  const { state = "" } = asked;
  assert.equal(codeIn({ code: "c", state }, asked), "c");
  assert.equal(codeIn({ code: "c", state: strict.state ?? "", iss: ISSUER }, strict), "c");
  for (const [answer, to] of [
    [{ code: "c", state: "guess" }, asked],
    [{ code: "c", state: "" }, {}],
    [{ code: "c", state, iss: "https://evil.example" }, asked],
    [{ code: "c", state: strict.state ?? "" }, strict],
  ] as const)
    assert.throws(() => codeIn(answer, to), /answers no login/);
  assert.throws(() => codeIn({ error: "access_denied", state }, asked), /did not let you in: access_denied/);
});
