# harmless: frames without end
shout(b'{}\n' * 20000)